"""Processes that commands start and stop."""
