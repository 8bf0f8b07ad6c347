"""Start tasks: their format, and how spiders take them from Redis."""
