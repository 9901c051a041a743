"""The parts of the report, each a module and its template. ``dashboards/cards.py`` lists them in the page's order."""
