"""Writer: moves items from the stream into the database, and updates the scheduler's state."""
