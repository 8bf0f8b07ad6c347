"""Moves items from the stream into the database and tells the scheduler what was learned."""
