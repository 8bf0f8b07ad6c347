"""Imports the modules that tasks need once, in the worker's main process, before the pool is forked.

Beat, Flower and the commands import `tasks`, too, and need none of this. It is two thirds of what a worker's start costs, so
task modules import it in their functions.
"""

from __future__ import annotations

import gc
from importlib import import_module

from workers.application import application


def load_ahead() -> None:
    """Call it before the pool is forked. Its processes share what is loaded, and never look through it for garbage."""
    gc.disable()  # the collector would look again and again at modules that stay
    try:
        for name in application().preload():
            import_module(name)
    finally:
        gc.freeze()
        gc.enable()
