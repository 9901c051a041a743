"""A lake that grows, day by day: what the saved questions by day answer, as charts in one HTML file."""
