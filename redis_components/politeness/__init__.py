"""Limits of sites: rates, quotas, concurrency, quiet hours, robots.txt."""
