"""The forum application's records in Redis."""
