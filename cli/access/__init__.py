"""Access of commands to Redis, the database and the names in their arguments."""
