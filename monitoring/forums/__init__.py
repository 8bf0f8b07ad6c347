"""The forum crawl's part of metrics and pages (`monitoring/part.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from monitoring.part import Part

from . import data, pages
from .metrics import FORUM_METRICS

if TYPE_CHECKING:
    from fastapi import APIRouter

    from monitoring.pages.actions import Action
    from monitoring.pages.routes import Desk


def _actions() -> Mapping[str, Action]:
    from .actions import ACTIONS

    return ACTIONS


def _routes(desk: Desk) -> APIRouter:
    from .search import search_routes

    return search_routes(desk)


PART = Part(
    metrics=FORUM_METRICS,
    links=(("/sites", "Sites"), ("/events", "Events"), ("/search", "Search")),
    pages={"sites": pages.sites, "events": pages.events},
    named_pages={"site": pages.site},
    routes=_routes,
    actions=_actions,
    names={
        "board_tone": pages.board_tone,
        "board_why": pages.board_why,
        "scan_ends": pages.SCAN_ENDS,
    },
    rows=data.ForumRows,
    overview=pages.overview,
)
