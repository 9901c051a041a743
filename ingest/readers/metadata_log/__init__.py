"""The metadata log of a KRaft quorum: its batches, records, snapshots, and the state of an election.

What a record is in Kafka's own schemas stands in ``record_types.json``. Which of the records were committed is not
judged here.
"""
