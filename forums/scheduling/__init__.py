"""Scheduling of forums and threads."""
