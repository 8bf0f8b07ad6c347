"""The text of a new site file, written from what a page shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from .survey import Links, Posts

if TYPE_CHECKING:
    from .reading import ListedForum

_TEXT = 60  # characters of one that is shown
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
# No profile knows this software. What stands below was guessed from the pages that were looked at, the rest is what many boards
# have in common (`generic`). A field is a CSS selector, or an XPath that begins with ./ (docs/sites.md has a worked example).
# Run `trawl sites check {name} --live` and correct what is wrong or empty:
# 1. url of the list page and of the thread's page: {{forum}}, {{thread}} and {{page}} are filled in, {{url}} is the thread's own
#    address, as the list shows it.
# 2. rows: the element of one thread in the list, and of one post in the thread.
# 3. the id of each, mostly from a link or an attribute: the regular expression's first group.
# 4. next: the link to the next page, of the list and of the thread. Without it everything behind the first page is missed.
"""
_EXAMPLE_ID = "{ select = 'a.title::attr(href)', regex = '/topic/(\\d+)' }"


class Guessed(msgspec.Struct, frozen=True, kw_only=True):
    """What a survey of an unknown forum found; None where it found nothing."""

    index_path: str = "/"
    forums: Links | None = None
    list_pages: str | None = None  # with {forum} and {page}
    threads: Links | None = None
    thread_pages: str | None = None
    posts: Posts | None = None
    list_next: str | None = None  # selector of the link to the next page
    thread_next: str | None = None
    list_texts: tuple[tuple[str, str], ...] = ()  # selectors and texts of the first row
    thread_texts: tuple[tuple[str, str], ...] = ()


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
    guessed: Guessed | None = None


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
        parts += [_UNKNOWN.format(name=draft.name), _shapes(draft), *_pages(draft.guessed or Guessed())]
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


def _pages(guessed: Guessed) -> Iterator[str]:
    """The tables of an unknown forum's pages; what was not found is a comment to be filled in."""
    if guessed.forums:
        yield f"\n[pages.index]\nurl = {_text(guessed.index_path)}\nrows = {_text(guessed.forums.link)}\n"
        yield f'\n[pages.index.fields]\nid = {_id("./@href", guessed.forums, whole=True)}\nname = "."\nurl = "."\n'
    yield from _list_page(guessed)
    yield from _comments_page(guessed)


def _list_page(guessed: Guessed) -> Iterator[str]:
    threads = guessed.threads
    link = threads.link if threads else None
    yield "\n[pages.list]\n" + _line("url", guessed.list_pages, "/forum/{forum}?page={page}")
    yield _line("rows", threads.rows if threads else None, "tr.topic") + _line("next", guessed.list_next, "a[rel=next]")
    yield "\n[pages.list.fields]\n"
    yield f"id = {_id(f'{link}::attr(href)', threads)}\n" if threads else f"# id = {_EXAMPLE_ID}\n"
    yield _line("title", link, "a.title") + _line("url", link, "a.title")
    yield '# reply_count = ".replies"\n# last_activity = "time"\n' + _texts(guessed.list_texts)


def _comments_page(guessed: Guessed) -> Iterator[str]:
    posts = guessed.posts
    opening = posts.opening if posts else None
    yield "\n[pages.comments]\n" + _line("url", guessed.thread_pages, "/topic/{thread}?page={page}")
    yield _line("rows", posts.rows if posts else None, "div.post") + _line("next", guessed.thread_next, "a[rel=next]")
    yield f"{'' if opening else '# '}first_is_post = false        # where the opening post is no row\n"
    if posts and opening:
        yield f"\n[pages.comments.post]\nbody = {_text(f'{opening} {posts.body}')}\n"
    yield "\n[pages.comments.fields]\n" + _line("id", posts.id if posts else None, "./@id")
    yield _line("body", posts.body if posts else None, ".content") + _line("author", posts.author if posts else None, ".author")
    yield '# created_at = "time"\n' + _texts(guessed.thread_texts)


def _texts(found: tuple[tuple[str, str], ...]) -> str:
    lines = [f"#   {selector}   {text if len(text) <= _TEXT else text[: _TEXT - 1] + '…'}\n" for selector, text in found]
    return "".join(["# What is in the first row:\n", *lines]) if lines else ""


def _line(key: str, value: str | None, example: str) -> str:
    return f"# {key} = {_text(example)}\n" if value is None else f"{key} = {_text(value)}\n"


def _id(select: str, links: Links, *, whole: bool = False) -> str:
    return f"{{ select = {_text(select)}, regex = {_text(links.id_regex(whole=whole))} }}"


def _text(value: str) -> str:
    return f"'{value}'" if "'" not in value else json.dumps(value, ensure_ascii=False)
