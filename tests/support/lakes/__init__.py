"""Lakes for tests: some written row by row to tell a story, one reconstructed from captures and then only read.

`rows` writes a table's rows by its spec.
"""
