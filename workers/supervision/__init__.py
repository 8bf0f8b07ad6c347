"""Launches one crawler process, watches it and restarts it."""
