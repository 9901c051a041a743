"""The controller's procedures (creation, deletion, broker changes, failover, reassignment): an oracle for R13 to R16.

They compose the state machines of :mod:`reconstruct.model.controller`, which the pipeline executes one transition at a
time. The pipeline does not execute the procedures: a log shows only some of their steps.
"""
