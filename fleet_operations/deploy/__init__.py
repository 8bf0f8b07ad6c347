"""Versions of a project: wheels, environments, checks."""
