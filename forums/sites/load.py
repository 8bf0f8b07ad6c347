"""Folder of the site files, and their sites, each read again when its file changes."""

from __future__ import annotations

import logging
import os
import re
import time
from pathlib import Path

import msgspec

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.site import SITE_NAME, Site
from forum_reader.errors import SiteError
from forums.environment import Sites
from redis_components.errors import ConfigError, did_you_mean
from redis_components.politeness.limits import is_name as is_lane
from redis_components.politeness.limits import parse_quiet_hours
from redis_components.server.untrusted_values import toml_table
from redis_components.server.variables import variable
from workers.http.public_addresses import Allowance


class SiteFileError(SiteError, ConfigError):
    """A site file of this fleet is missing or wrong: an error of its configuration."""


def sites_dir() -> Path:
    """Return TRAWL_SITES_DIR, else the folder `sites` of the project. Raises ConfigError."""
    return Sites.read().sites_dir


CHECK_S = 0.1
"""Least seconds between two checks of a site's files: each page asks several times."""

logger = logging.getLogger(__name__)

_Stamp = tuple[tuple[Path, int, int], ...]


class _Known(msgspec.Struct, frozen=True):
    stamp: _Stamp
    variables: dict[str, str | None]
    site: Site


class _LastRead(msgspec.Struct, frozen=True):
    site: Site
    is_there: bool  # its file
    at: float


_known: dict[Path, _Known] = {}
_readings: dict[tuple[str | None, str], _LastRead] = {}
_complaints: dict[Path, str] = {}  # last logged error of a file in use


def load_site(name: str) -> Site:
    """Return the site `name`. Raises SiteError, which lists the sites that exist."""
    return load_file(site_path(name))


def site_path(name: str) -> Path:
    """Return the file of a site. Raises SiteError where there is none."""
    path = sites_dir() / f"{name}.toml"
    if not is_site_name(name) or not path.is_file():  # in this order: a name may be too long for a file
        where = f"there is no site file in {sites_dir()}; trawl sites new URL writes one"
        if known := site_names():
            hint = did_you_mean(name, known)
            where = f"sites in {sites_dir()} are {', '.join(known)}; add {name!s:.100}.toml or use one of them{hint}"
        raise SiteFileError(f"unknown site {name!r:.100}: {where}")
    return path


def is_site_name(name: object) -> bool:
    """Return True if a site may have this name."""
    return isinstance(name, str) and re.fullmatch(SITE_NAME, name) is not None


def site_to_ask(name: str) -> Site:
    """Return the site like `load_site`; while its file, which was right before, is wrong, as this process read it last.

    For crawlers, before they request a page: a mistake while the file is edited must not cost the requests that wait.
    """
    reading = _last_read(name)
    if not reading.is_there:
        site_path(name)  # raises
    return reading.site


def site_in_use(name: str) -> Site:
    """Return the site like `site_to_ask`, also where the file is gone: for pages that were requested."""
    return _last_read(name).site


def _last_read(name: str) -> _LastRead:
    key, now = (variable("TRAWL_SITES_DIR"), name), time.monotonic()
    reading = _readings.get(key)
    if reading is None or now - reading.at >= CHECK_S:
        reading = _readings[key] = _read_again(name, now)
    return reading


def _read_again(name: str, now: float) -> _LastRead:
    try:
        return _LastRead(load_site(name), True, now)
    except SiteError as exc:
        known = _known.get(path := sites_dir() / f"{name}.toml")
        if known is None:
            raise
        is_there = path.is_file()
        if is_there and _complaints.get(path) != str(exc):
            _complaints[path] = str(exc)
            logger.error("%s; until it is mended, site %s goes on as it was", exc, name)
        return _LastRead(known.site, is_there, now)


def site_names() -> list[str]:
    """Return the names of all sites in their order, also of those whose files are wrong."""
    return [path.stem for path in _files()]


def load_all() -> tuple[list[Site], dict[str, SiteError]]:
    """Return all sites whose files are right, and the errors of the others by name, both in the order of names: one bad file
    stops no other site.
    """
    sites, wrong = [], {}
    for path in _files():
        try:
            sites.append(load_file(path))
        except SiteError as exc:
            wrong[path.stem] = exc
    return sites, wrong


def load_file(path: Path) -> Site:
    """Return the site of a file. Called for each page: the file is read again when one of its layers, or a variable, has
    changed.
    """
    known = _known.get(path)
    if known and known.variables == {name: os.environ.get(name) for name in known.variables} and _is_current(known.stamp):
        return known.site
    read = _layers_of(path)
    stamp = _stamp(read.files)
    site = checked(read)
    _known[path] = _Known(stamp, read.variables, site)
    return site


def _layers_of(path: Path) -> load.Layers:
    """Return the content of a site file, merged over its profiles. Raises SiteFileError."""
    try:
        table = toml_table(path.read_text("utf-8"))
    except (OSError, ValueError) as exc:
        raise SiteFileError(f"{path}: cannot be read as TOML: {exc}") from exc
    try:
        return load.read(path, table)
    except SiteError as exc:
        raise SiteFileError(str(exc)) from exc


def checked(read: load.Layers) -> Site:
    """Return the site that a file and its profiles describe, with what only this fleet can check. Raises SiteFileError."""
    try:
        return site_of(read, _CHECKS)
    except SiteError as exc:
        raise SiteFileError(str(exc)) from exc


def _check_lane(name: str) -> None:
    if not is_lane(name):
        raise ValueError(f"{name!r} is not a name: write it without spaces, '@' and '|'")


def _check_quiet_hours(text: str) -> None:
    try:
        parse_quiet_hours(text or "00:00-01:00")
    except ConfigError as error:
        raise ValueError(str(error)) from None


_CHECKS = {"lane": _check_lane, "quiet": _check_quiet_hours}


def allowance_of(site: Site) -> Allowance:
    """Return the private addresses that a site's requests may reach: those in its file, or all."""
    return Allowance(everything=site.allow_private, hosts=frozenset(host for _, host, _ in site.places if host))


def _files() -> list[Path]:
    return sorted(sites_dir().glob("*.toml"))


def _is_current(stamp: _Stamp) -> bool:
    try:
        return stamp == _stamp([path for path, _, _ in stamp])
    except OSError:
        return False


def _stamp(paths: tuple[Path, ...] | list[Path]) -> _Stamp:
    found = [(path, path.stat()) for path in paths]
    return tuple((path, status.st_mtime_ns, status.st_size) for path, status in found)
