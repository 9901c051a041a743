"""The JSON lines that ``capture`` writes: probes of offsets, descriptions of the cluster, gaps; each kind to its rows.

``json_lines`` reads the lines themselves. What asks the cluster and writes them is ``ingest/capture``.
"""
