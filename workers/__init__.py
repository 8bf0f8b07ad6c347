"""Runs crawlers of any spider on a node: processes, supervision, logs, and the decisions about the fleet's size."""
