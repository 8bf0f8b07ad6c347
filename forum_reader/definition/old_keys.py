"""Keys of site files of the release before, which are read for one release, with a warning that names the new key."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

LIMITS = {
    **{("politeness", f"max_{name}"): name for name in ("rate", "burst", "concurrency", "per_hour", "per_day")},
    ("politeness", "quiet_hours"): "quiet",
    ("politeness", "delay_s"): "rate",
    ("schedule", "requests_per_hour"): "per_hour",
}
"""Key of [politeness] by the old key. The last two were the pace of one crawler, and a plan."""
OF_PAGES = {"wall": "block_page", "more": "has_more", "without": "remove"}
_warned: set[tuple[Path, str]] = set()
log = logging.getLogger(__name__)


def rename(table: dict[str, Any], file: Path) -> None:
    """Give each old key of a file its new name, with one warning in each process. Of two values of a limit the lower counts."""
    for (name, old), new in LIMITS.items():
        if not isinstance(of := table.get(name), dict) or old not in of or (value := _as_limit(old, of[old])) is None:
            continue
        if not isinstance(limits := table.setdefault("politeness", {}), dict):
            continue
        if old == "requests_per_hour":
            of.setdefault("scan_budget_per_hour", of[old])
        del of[old]
        both = [one for one in (limits.get(new), value) if one and isinstance(one, float | int)]
        limits[new] = min(both, default=value)
        plan = "schedule.scan_budget_per_hour and " if old == "requests_per_hour" else ""
        _warn(file, f"{name}.{old}", f"{plan}politeness.{new} = {value}, of all crawlers together")
    if isinstance(pages := table.get("pages"), dict):
        for name, page in pages.items():
            _rename_in(page, f"pages.{name}", file)


def _rename_in(table: Any, place: str, file: Path) -> None:
    """Rename the keys of a page and of the fields in it; the names of fields stay, and a request's headers and body."""
    if not isinstance(table, dict) or re.fullmatch(r"pages\.[^.]*\.(headers|body)", place):
        return
    if not place.endswith(".fields"):
        for old, new in OF_PAGES.items():
            if old in table and new not in table:
                table[new] = table.pop(old)
                _warn(file, f"{place}.{old}", new)
    for key, value in table.items():
        _rename_in(value, f"{place}.{key}", file)


def _as_limit(old: str, value: Any) -> Any:
    """Return the value of an old key under its new name; None for a wrong one."""
    if old not in ("delay_s", "requests_per_hour") or value is False:
        return value
    if not isinstance(value, float | int) or not value >= 0:
        return None
    if old == "delay_s":
        return min(max(1 / value, 1e-5), 1e4) if value else 0
    return min(max(int(min(value, 1e9)), 1), 10**9)


def _warn(file: Path, old: str, new: str) -> None:
    if (file, old) not in _warned:
        _warned.add((file, old))
        log.warning("%s: %s is read as %s for one release: rename it", file, old, new)
