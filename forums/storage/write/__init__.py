"""Writes items: merge, upsert, event log."""
