"""Crawls that end: jobs, groups of spiders, and their runs with the verdicts of members."""
