"""Saved questions (``ask``): a folder of SQL files for each subject, and what reads them."""
