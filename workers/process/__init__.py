"""Modules that a crawler process and its supervisor share: options, exit kinds, heartbeat, limits."""
