"""Guarded connections and allowed addresses: HTTP of every process of the fleet."""
