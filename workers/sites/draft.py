"""The text of a new site file, written from what a page shows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from .reading import ListedForum

_MOST_FORUMS = 500  # in a file; a site with more is watched by [discover]
_HEAD = """\
# {base_url}: {software}, written by `trawl sites new` on {today}.
# `trawl sites check {name} --live` tries it, `trawl sites show {name}` shows every value; docs/sites.md explains the keys.

{profile_line}{base_line}"""
_OPTIONS = """
[schedule]
# requests_per_hour = 1200     # the site's budget, over the whole fleet
# min_interval_s = 30          # least time between two scans of a forum

[politeness]
# delay_s = 0.5                # time between two requests of one crawler
# concurrency = 2              # requests of one crawler at a time
"""
_UNKNOWN = """
# No profile knows this software: `generic` guesses from what many boards have in common. What it does not find, give here; a
# field is a CSS selector, or an XPath that begins with ./ (docs/sites.md has a worked example).
# 1. url of the list page and of the thread's page: {forum}, {thread} and {page} are filled in.
# 2. rows: the element of one thread in the list, and of one post in the thread.
# 3. the id of each, mostly from a link or an attribute: the regular expression's first group.
# Then run `trawl sites check NAME --live` until no field that you want is empty.
"""
_UNKNOWN_PAGES = """
[pages.list]
# url = "/forum/{forum}?page={page}"
# rows = "tr.topic"

[pages.list.fields]
# id = { select = "a.title::attr(href)", regex = '/topic/(\\d+)' }
# title = "a.title"
# reply_count = ".replies"
# last_activity = "time"

[pages.comments]
# url = "/topic/{thread}?page={page}"
# rows = "div.post"

[pages.comments.fields]
# id = { select = "./@id", regex = '(\\d+)' }
# body = ".content"
# author = ".author"
# created_at = "time"
"""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What a new file is written from. `profile` None: the software is not known."""

    name: str
    profile: str | None
    software: str
    base_url: str
    base_in_profile: bool = False
    forums: tuple[ListedForum, ...] = ()
    can_discover: bool = False
    obey_robots: bool = True
    shapes: Sequence[tuple[str, int, str]] = ()


def name_of(url: str) -> str:
    """A site's name, from its host."""
    parts = urlsplit(url)
    host = (parts.hostname or "site").removeprefix("www.")
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{host}-{parts.port}" if parts.port else host)


def text_of(draft: Draft) -> str:
    """The file."""
    head = _HEAD.format(
        name=draft.name,
        base_url=draft.base_url,
        software=draft.software,
        today=datetime.now(UTC).date().isoformat(),
        profile_line=f"profile = {json.dumps(draft.profile or 'generic')}\n",
        base_line="" if draft.base_in_profile else f"base_url = {json.dumps(draft.base_url)}\n",
    )
    robots = "" if draft.obey_robots else "obey_robots = false           # robots.txt forbids it: ask the site's owners\n"
    parts = [head, _forums(draft), _OPTIONS, robots]
    if draft.profile is None:
        parts += [_UNKNOWN, _shapes(draft), _UNKNOWN_PAGES]
    return "".join(parts)


def _forums(draft: Draft) -> str:
    everything = '[discover]                     # watch all that the index lists\ninclude = ["*"]\nexclude = []\n'
    if len(draft.forums) > _MOST_FORUMS:
        return f"\n# The index lists {len(draft.forums)} forums.\n{everything}"
    if draft.forums:
        lines = "\n".join(f"    {json.dumps(forum.id, ensure_ascii=False)},{_about(forum)}" for forum in draft.forums)
        commented = "".join(f"# {line}\n" for line in everything.splitlines())
        return f"\n# The forums to watch: delete those that you do not want.\nforums = [\n{lines}\n]\n" + (
            f"\n# Or in their place, new ones too:\n{commented}" if draft.can_discover else ""
        )
    return '\n# The ids of the forums to watch, as they stand in their addresses, such as ["12", "news"].\nforums = []\n'


def _about(forum: ListedForum) -> str:
    threads = f", {forum.threads} threads" if forum.threads is not None else ""
    name = " ".join(forum.name.split()) if forum.name != forum.id else ""
    return f"  # {name}{threads}".rstrip(" #") if name or threads else ""


def _shapes(draft: Draft) -> str:
    if not draft.shapes:
        return ""
    lines = "\n".join(f"#   {count:>4} x {shape}   ({example})" for shape, count, example in draft.shapes)
    return f"# Links of the page that was looked at, with {{n}} for numbers:\n{lines}\n"
