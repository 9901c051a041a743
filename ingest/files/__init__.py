"""What each file is and whose: one pass over its bytes, then a judgement from all files of a run together.

``inspection`` makes the pass, ``recognise`` says what the file is, ``content_facts`` and ``znode_facts`` what its
content says of cluster and broker, ``attribution`` decides. Reading records out of a file is in ``readers``.
"""
