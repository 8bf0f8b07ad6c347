"""Traces of pages and tasks, by OpenTelemetry."""
