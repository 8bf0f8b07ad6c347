"""How commands reach Redis, the database and their targets."""
