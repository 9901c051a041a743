"""Pages of ``docs/`` that are written from the code: tables from their specs, transitions from the model, rules."""
