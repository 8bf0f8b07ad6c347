"""Lua scripts of the fleet, by name."""

from __future__ import annotations

from pathlib import Path

from redis_components.server import scripts

LUA = Path(__file__).with_name("lua")


def script(name: str) -> scripts.Script:
    """Return the script `workers/state/lua/<name>.lua`. Raises KeyError if there is none."""
    return scripts.script(name, LUA)
