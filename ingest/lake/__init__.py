"""The lake: every table declared once (``tables``), and the one writer of Delta tables (``delta``).

``creation`` makes a table, ``direct`` has tasks write its Parquet files, ``pinned`` reads small tables without asking
Delta again. What a row means, and how it is made, is not known here.
"""
