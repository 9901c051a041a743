"""What each saved question has to answer of a cluster without ZooKeeper, by the folder of ``dashboards/questions``.

What is expected was read off the raw records of the metadata log (an offset stands for its record: see
``kafka-dump-log`` or ``Recorded.records``), the brokers' lines, and what the scenario did to the cluster; not off what
the program answers. The scenario is ``lifecycle`` of the lab on 4.3.1: see ``docs/lab.md``.
"""
