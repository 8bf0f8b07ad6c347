"""A crawl seen from outside: counts, dead letters, the item stream."""
