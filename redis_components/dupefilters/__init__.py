"""Sets of fingerprints in Redis: kinds, sizes, a client, a report."""
