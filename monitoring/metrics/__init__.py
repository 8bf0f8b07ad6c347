"""Prometheus metrics, by family, and their exposition."""
