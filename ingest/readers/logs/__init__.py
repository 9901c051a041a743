"""Logs of brokers: layouts, framing, times, and the rows of ``bronze.log_records``."""
