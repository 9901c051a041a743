"""The lake: every table declared once (``tables``), and the one writer of Delta tables (``delta``).

``pinned`` reads small tables without asking Delta again. What a row means, and how it is made, is not known here.
"""
