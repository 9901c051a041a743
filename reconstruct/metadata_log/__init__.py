"""What a KRaft quorum decided, by its metadata log: which records count, what each made of the cluster, and whether
every node's snapshots agree with it. The rooms of partitions and of the cluster make their timelines of that, as they
do of writes to znodes.
"""
