"""A pytest plugin: `import scrapy_redis` gives `redis_components`, and classes with nose's `setup()` are set up.

Dotted paths in settings and in `mock.patch` go through `sys.modules`, so they find the same modules.
"""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

INCUMBENT, OURS = "scrapy_redis", "redis_components"
MODULES = ("connection", "defaults", "dupefilter", "picklecompat", "pipelines", "queue", "scheduler", "spiders", "stats", "utils")

if find_spec(INCUMBENT) is not None:
    raise pytest.UsageError(f"{INCUMBENT} is installed here: its own tests would run on itself")
sys.modules[INCUMBENT] = import_module(OURS)
for name in filter(lambda name: find_spec(f"{OURS}.{name}"), MODULES):  # a module that is missing fails its own tests
    sys.modules[f"{INCUMBENT}.{name}"] = import_module(f"{OURS}.{name}")


def pytest_pycollect_makeitem(collector: Any, name: str, obj: object) -> None:
    """The suite was written for a pytest that called `setup()`, as nose did; pytest 8 stopped that."""
    if inspect.isclass(obj) and "setup" in vars(obj) and not hasattr(obj, "setup_method"):
        obj.setup_method = vars(obj)["setup"]  # type: ignore[attr-defined]
