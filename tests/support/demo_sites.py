"""Site files for the demo's forum under other names."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
RECENT_PAGE = """
[pages.recent]
url = "/recent/{page}"
format = "json"
rows = "messages"
pages = "pages"

[pages.recent.fields]
thread = "post_id"
forum_id = "forum_id"
id = "id"
opening = "opening"
title = "title"
body = "body"
parent_id = "parent_id"
author = "author"
created_at = "created_at"
edited_at = "edited_at"
deleted = "deleted"
"""
"""The forum's newest messages, for a site file."""


def declare(folder: Path, name: str, url: str, more: str = "") -> Path:
    """A site file for a demo forum at `url`; returns its path."""
    text = (ROOT / "demo" / "sites" / "demo.toml").read_text("utf-8").replace("${TRAWL_DEMO_URL:-http://127.0.0.1:8765}", url)
    path = folder / f"{name}.toml"
    path.write_text(text + more, "utf-8")
    return path
