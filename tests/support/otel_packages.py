"""The packages of the extra `otel`, which lie apart: redis-py loads them in every process that can import them."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "otel"


def can_import_them() -> bool:
    """Whether they are installed; from now on this process can import them."""
    if FOLDER.is_dir() and str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return FOLDER.is_dir()
