"""Copies the exporter's files out of a whole installation: `python packaging/exporter_part.py ENVIRONMENT`; for its own image.

Run with the interpreter of the whole installation; ENVIRONMENT is an empty virtual environment of the same Python. The versions
are those of the fleet's image, since they are its files.
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
from importlib import metadata
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NEEDED = (
    "trawl-frontier",
    "trawl-reader",
    "redis",
    "hiredis",
    "msgspec",
    "psutil",
    "pydantic-settings",
    "python-dotenv",
    "fastapi",
    "uvicorn",
    "jinja2",
    "prometheus-client",
    "warcio",
    "sqlalchemy",
    "psycopg",
    "psycopg-binary",
    "pymysql",
)
"""Distributions in addition to the fleet's own package, with their requirements."""
NOT_FOLLOWED = frozenset({"trawl-fleet", "trawl-frontier", "trawl-reader"})  # they require packages of crawlers


def closure(names: tuple[str, ...]) -> set[str]:
    """Return the names with all their installed requirements."""
    found: set[str] = set()
    waiting = [canonicalize_name(name) for name in names]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            wanted = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # optional, or of another platform
            continue
        found.add(name)
        if name not in NOT_FOLLOWED:
            required = (one for one in map(Requirement, wanted) if one.marker is None or one.marker.evaluate({"extra": ""}))
            waiting += [canonicalize_name(one.name) for one in required]
    return found


def copy(name: str, source: Path, target: Path) -> None:
    """Copy the existing files of a distribution, with their bytecode."""
    for file in metadata.files(name) or ():
        path = source / file
        if ".." in file.parts or not path.is_file():
            continue
        compiled = Path(cache_from_source(str(path))) if path.suffix == ".py" else None
        for one in (path, compiled):
            if one is not None and one.is_file():
                to = target / one.relative_to(source)
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(one, to)


def main(environment: Path) -> None:
    source = Path(sysconfig.get_path("purelib"))
    target = environment / source.relative_to(sys.prefix)
    for name in sorted(closure(("trawl-fleet", *NEEDED))):
        copy(name, source, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
