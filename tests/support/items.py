"""Items as spiders send them, complete and valid; a test names only what matters to it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(minutes: float) -> str:
    """A time on the wire, `minutes` after the start of 2026."""
    return (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def post(id: Any = "p1", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "post",
        "site": "demo",
        "id": id,
        "forum_id": "f1",
        "title": f"Title of {id}",
        "body": f"Body of {id}: grüße, \U0001f577",
        "author": "ada",
        "created_at": at(0),
        "views": 3,
        "reply_count": 2,
        "last_reply_at": at(5),
        "url": f"http://127.0.0.1/post/{id}",
        "fetched_at": at(10),
    } | changes


def comment(id: Any = "c1", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "comment",
        "site": "demo",
        "id": id,
        "post_id": "p1",
        "parent_id": None,
        "author": "bob",
        "body": f"Body of {id}",
        "created_at": at(1),
        "url": "http://127.0.0.1/comment/p1/1",
        "fetched_at": at(10),
    } | changes


def scan(forum_id: Any = "f1", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "scan",
        "site": "demo",
        "forum_id": forum_id,
        "started_at": at(0),
        "finished_at": at(1),
        "pages": 3,
        "threads": 60,
        "outcome": "complete",
        "reason": None,
    } | changes


def forum(id: Any = "f1", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "forum",
        "site": "demo",
        "id": id,
        "name": f"Name of {id}",
        "url": f"http://127.0.0.1/forum/{id}",
        "parent_id": None,
        "threads": 60,
        "fetched_at": at(10),
    } | changes


def check(id: Any = "p1", **changes: Any) -> dict[str, Any]:
    return {
        "kind": "check",
        "site": "demo",
        "id": id,
        "forum_id": "f1",
        "started_at": at(9),
        "finished_at": at(11),
        "mode": "check",
        "first_page": 1,
        "last_page": 1,
        "requests": 2,
        "comments": 2,
        "total": 2,
        "whole": True,
        "consistent": True,
        "gone": False,
        "token": "2@x",
        "last_comment_id": "c2",
        "cursor": None,
        "reason": None,
    } | changes


def wire(item: dict[str, Any]) -> bytes:
    """The item as it travels."""
    return json.dumps(item).encode()
