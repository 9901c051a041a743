"""Requests of controllers to brokers, from decision to answer."""
