"""Outputs of events: one file for each kind, each with `deliver`."""
