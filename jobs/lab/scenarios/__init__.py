"""The incidents as code. Each is a function of a :class:`~jobs.lab.stage.Stage`; see ``catalogue`` for the list."""
