"""Reading site files. Each error is one line that names file, key, value and fix."""

from __future__ import annotations

import os
import re
import tomllib
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from redis_components.embedded import project_dir

from .model import Site, SiteError

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def sites_dir() -> Path:
    """TRAWL_SITES_DIR, else the folder `sites` of the project."""
    return Path(os.environ.get("TRAWL_SITES_DIR") or project_dir() / "sites")


def load_site(name: str) -> Site:
    """The site `name`. Raises SiteError, which lists the sites that exist."""
    path = sites_dir() / f"{name}.toml"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or not path.is_file():
        known = ", ".join(sorted(file.stem for file in sites_dir().glob("*.toml"))) or "none"
        raise SiteError(f"unknown site {name!r}: sites in {sites_dir()} are {known}; add {name}.toml or use one of them")
    return _read(path)


def load_sites() -> list[Site]:
    """All sites in name order. Raises SiteError for the first file that is wrong."""
    return [_read(path) for path in sorted(sites_dir().glob("*.toml"))]


def _read(path: Path) -> Site:
    try:
        text = path.read_text("utf-8")
        return _parse(_expand(text, path), path)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise SiteError(f"{path}: cannot be read as TOML: {exc}") from exc


@lru_cache(maxsize=1000)  # spiders ask for their site with each page; a file that was changed has another text
def _parse(text: str, path: Path) -> Site:
    fields = tomllib.loads(text)
    fields.setdefault("name", path.stem)
    try:
        site = Site.model_validate(fields)
    except ValidationError as exc:
        first = exc.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "file"
        raise SiteError(f"{path}: {key} = {first.get('input')!r}: {first['msg']}") from exc
    if site.name != path.stem:
        raise SiteError(f"{path}: name = {site.name!r}: must be {path.stem!r}, as the file is named")
    return site


def _expand(text: str, path: Path) -> str:
    """`${NAME}` and `${NAME:-default}` from the environment, so that addresses and secrets need not be in the file."""

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], match[2])
        if found is None:
            raise SiteError(f"{path}: ${{{match[1]}}} is not set: set it in the environment, or write ${{{match[1]}:-default}}")
        return found.replace("\\", "\\\\").replace('"', '\\"')

    return "\n".join(line if line.lstrip().startswith("#") else _VARIABLE.sub(value, line) for line in text.splitlines())
