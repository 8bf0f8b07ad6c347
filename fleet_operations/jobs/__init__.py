"""Crawls that end: jobs, their orders and delays."""
