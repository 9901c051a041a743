"""The segments of each replica's log: when each began, was closed and was deleted, what it holds, and whether its
indexes agree with it. From copies and listings of partition directories and from lines of server.log.
"""
