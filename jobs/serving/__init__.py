"""``serve``: the lake for tools that speak JDBC or ODBC, by Spark's Thrift server (HiveServer2's protocol); read-only.

Statements and settings of clients come to :mod:`.service` before Spark's own service sees them.
"""
