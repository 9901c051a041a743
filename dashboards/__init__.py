"""Saved questions, charts and the self-contained HTML report."""
