"""The part of an application in metrics and pages: `PART` in the module that `Application.monitoring` names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from workers.application import application

from .pages.charts import NO_ROWS, StoredRows

if TYPE_CHECKING:
    from fastapi import APIRouter

    from fleet_operations.overview import Overview
    from monitoring.metrics.figures import MetricSpec

    from .pages.actions import Action
    from .pages.routes import Desk
    from .pages.views import Reading


class Part(NamedTuple):
    """Additions of an application. Without one there are none."""

    metrics: tuple[MetricSpec, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    """Paths of pages and their names, for the head of each page."""
    pages: Mapping[str, Callable[[Reading], str]] = {}
    """`sites` -> the page at `/sites`."""
    named_pages: Mapping[str, Callable[[Reading, str], str]] = {}
    """`site` -> the pages at `/site/NAME`."""
    routes: Callable[[Desk], APIRouter] | None = None
    """More routes."""
    actions: Callable[[], Mapping[str, Action]] = dict
    """Actions of the page, by name."""
    names: Mapping[str, object] = {}
    """Names for templates."""
    rows: Callable[[], StoredRows] = lambda: NO_ROWS
    """A reader of what is stored, for the charts."""
    overview: Callable[[Overview, StoredRows, bool], Mapping[str, object]] = lambda view, rows, is_known: {}
    """Values of its sections of the overview (`boards.html`, `news.html`); what was crawled only for a viewer who is known."""


@cache
def part() -> Part:
    """Return the part of this fleet's application."""
    name = application().monitoring()
    found: Part = import_module(name).PART if name else Part()
    return found
