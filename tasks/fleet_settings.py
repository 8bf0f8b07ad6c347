"""This application's `celeryconfig.py`, loaded from the folder above this package.

By its place, not by its name: in a user's folder another `celeryconfig.py` may come first on `sys.path`, and it configures that
user's own Celery application. For the same reason it is not entered into `sys.modules`.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

PLACE = Path(__file__).resolve().parents[1] / "celeryconfig.py"


def _load() -> ModuleType:
    spec = spec_from_file_location("celeryconfig", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


celeryconfig = _load()
