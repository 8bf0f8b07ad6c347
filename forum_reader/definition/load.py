"""Site of the merged content of a site file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError

from forum_reader.errors import SiteError

from . import error_lines, layers
from .site import Site

Checks = Mapping[str, Callable[[str], None]]
"""Checks of options that only their user can read (`quiet_hours`, `lane`), by name. Each raises ValueError."""


def site_of(read: layers.Layers, checks: Checks | None = None) -> Site:
    """Return the site that a file and its profiles describe. Raises SiteError with all faults, one line each."""
    path = read.files[0]
    fields: dict[str, Any] = {"name": path.stem, **read.values}
    wrong = error_lines.secrets(read)
    try:
        site = Site.model_validate(fields, context=checks)
    except ValidationError as exc:
        raise SiteError("\n".join(error_lines.lines(read, exc) + wrong)) from exc
    if site.name != path.stem:
        wrong.append(f"{path}: name = {site.name!r}: must be {path.stem!r}, as the file is named")
    if wrong:
        raise SiteError("\n".join(wrong))
    return site
