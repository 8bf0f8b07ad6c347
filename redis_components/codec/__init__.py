"""Stored forms: how values and requests become bytes and come back."""
