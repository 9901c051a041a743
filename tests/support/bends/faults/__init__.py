"""Faults of Kafka's, made in the raw text of real captures: written from the rules, not from how the program judges.

A kind of fault yields every place of a capture at which the change breaks a rule for certain, with all the lines and
znodes changed that would show it. Each names what must be found: rule, partition, broker, severity.
:mod:`tests.support.bends.faults.measure` tells what of them is.
"""
