"""Bronze rows become silver timelines and gold findings: ``pipeline`` is the table of contents, each subject a package.

In a room ``evidence`` is what it judges from, ``timeline`` what it makes of it, ``rules`` what must hold of that, and
``spark`` the steps on Spark: only these, ``engine`` and ``pipeline`` import pyspark. ``model`` is Kafka's protocol,
standard library only.
"""
