"""Data quality: expectations over the tables, gates, and their results."""

import os

# Great Expectations reads it when it is imported: no telemetry leaves the machine.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
