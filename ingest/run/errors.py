"""The ingest's own error."""


class IngestError(Exception):
    """The ingest cannot go on; the message is one sentence that says what to do."""
