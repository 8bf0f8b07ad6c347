"""Connections to Redis: addresses, clients, namespaces, Lua scripts, replies."""
