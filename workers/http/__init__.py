"""Guarded connections, allowed addresses, signed requests: HTTP of every process of the fleet."""
