"""Text of a new site file, and a preview: a few threads as the new file reads them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import is_this_machine
from forum_reader.errors import FetchFailed, SiteError
from forum_reader.readers.file_faults import faults_of_list, faults_of_thread, is_by_creation, seen_without_file
from forum_reader.reading.page_records import AnyPage, Asked, CommentsPage, ListPage
from forum_reader.reading.parse_body import strictly
from forum_reader.reading.read_page import read

if TYPE_CHECKING:
    from forum_reader.definition.site import Site
    from forum_reader.page.response import Get, TextResponse
    from forum_reader.reading.page_records import ListedForum, ListedThread, ReadComment, ReadPost

    from .wrapper import Wrapper


VARIABLE = "${"
"""Begins the name of a variable; a site file is read with the variable's value in its place."""
_ID = re.compile(r"[^\s/]\S{0,199}")  # as `forums` of a site file
_MOST_FORUMS = 500  # in a file; a site with more is watched by [discover]
_HEAD = """\
# {base_url}: {software}, written by `trawl sites new` on {today}.
# `trawl sites check {name} --live` tries it; docs/sites.md explains the keys.

"""
_OPTIONS = """
[schedule]
# scan_budget_per_hour = 1200  # requests for which scans and checks are planned
# min_interval_s = 30          # least time between two scans of a forum

[politeness]                   # what the site gets of all crawlers together, however many there are
"""
_KIND = """\
rate = 2                       # requests per second
concurrency = 2                # requests at a time
# quiet = "01:00-06:00"        # nothing is sent then
"""
_LEARNED = """
# There is no profile of this software: the tables below were learned from its pages. A field is a CSS selector, or an XPath that
# begins with ./ (docs/sites.md has a worked example): correct what is wrong, and try it with `trawl sites check {name} --live`.
"""
_UNKNOWN = """
# There is no profile of this software; `generic` fits many boards. Run `trawl sites check {name} --live` and write
# what is wrong or empty: [pages.list] and [pages.comments] with `url`, `rows`, `next`, and their fields (docs/sites.md).
"""
_FEED = """
# The site links this feed: one request shows which threads have changed (docs/sites.md, "The newest messages").
"""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of a new file. `profile` None: the software is not known, and `wrapper` is what was learned from its pages, if
    anything. Forums whose ids cannot stand in a file are left out.
    """

    name: str
    profile: str | None
    software: str
    base_url: str
    base_in_profile: bool = False
    forums: tuple[ListedForum, ...] = ()
    can_discover: bool = False
    obey_robots: bool = True
    allow_private: bool = False
    also_allowed: tuple[str, ...] = ()
    """Other places that are fetched: of a service that has the comments."""
    agent: str | None = None
    """User-Agent with a contact."""
    wrapper: Any = None
    language: str | None = None
    """Of dates, where the profile's differs."""
    time_zone: str | None = None
    """Of dates without a zone, where the profile's differs."""
    recent: dict[str, Any] | None = None
    """`[pages.recent]`, where the profile has none and the site links a feed."""
    gone: dict[str, str] | None = None
    """`gone` or `gone_at` of a thread's pages, where the profile's do not show that a thread is missing."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "forums", tuple(one for one in self.forums if _can_be_named(one.id)))


def _can_be_named(id_: str) -> bool:
    """Return True if an id may stand in a file. Ids come from pages: a bad one would spoil the whole file, and `${NAME}` would
    send a secret to the site.
    """
    return bool(_ID.fullmatch(id_)) and VARIABLE not in id_ and not any("\ud800" <= sign <= "\udfff" for sign in id_)


def name_of(url: str) -> str:
    """Return a site's name, made from its host."""
    parts = urlsplit(url)
    host = (parts.hostname or "site").removeprefix("www.")
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{host}-{parts.port}" if parts.port else host)


def text_of(draft: Draft) -> str:
    """Return the file's text. A site on another machine gets limits that do not depend on the number of crawlers. Raises
    SiteError where text from a page would be read as a variable of the environment.
    """
    wrapper: Wrapper | None = draft.wrapper
    head = _HEAD.format(
        name=draft.name, base_url=draft.base_url, software=draft.software, today=datetime.now(UTC).date().isoformat()
    )
    profile = draft.profile or (None if wrapper else "generic")
    lines = [f"profile = {json.dumps(profile)}\n"] if profile else []
    if not draft.base_in_profile:
        lines.append(f"base_url = {json.dumps(draft.base_url)}\n")
    if draft.also_allowed:
        lines.append(f"also_allowed = {json.dumps(list(draft.also_allowed))}   # has the comments\n")
    if draft.allow_private:
        lines.append("allow_private = true           # its name resolves to a private address\n")
    if wrapper:
        lines += _times(wrapper)
    lines += [f"{key} = {json.dumps(value)}\n" for key in ("language", "time_zone") if (value := getattr(draft, key))]
    robots = "" if draft.obey_robots else "obey_robots = false           # robots.txt forbids it: ask the site's owners\n"
    named = f"\n[headers]\nUser-Agent = {json.dumps(draft.agent)}\n" if draft.agent else ""
    limits = "" if is_this_machine(draft.base_url) else _KIND
    parts = [head, *lines, _forums(draft), _OPTIONS, limits, robots, named]
    if wrapper:
        parts += [_LEARNED.format(name=draft.name), *_missing(wrapper), *_pages(wrapper.pages)]
    elif draft.profile is None:
        parts.append(_UNKNOWN.format(name=draft.name))
    if draft.gone:
        parts += _pages({"comments": draft.gone})
    if draft.recent:
        parts += [_FEED, *_pages({"recent": draft.recent})]
    text = "".join(parts).encode("utf-8", "replace").decode()  # half a surrogate pair, which JSON can hold, is not a character
    refuse_variables(tomllib.loads(text))
    return text


def refuse_variables(value: Any) -> None:
    """Raise SiteError for `${` in a value from a page: the site would be sent the variable's value."""
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for one in value:
            refuse_variables(one)
    elif isinstance(value, str) and VARIABLE in value:
        raise SiteError(
            f"the site's pages contain {value!r:.100}, which a site file would take for a variable: write the file by hand"
        )


def _times(wrapper: Wrapper) -> Iterator[str]:
    yield f"language = {json.dumps(wrapper.language)}\n" if wrapper.language else '# language = "en"             # of its dates\n'
    if wrapper.time_zone:
        how = f"  # of dates that name none: {wrapper.time_zone.how}" if wrapper.time_zone.how else ""
        yield f"time_zone = {json.dumps(wrapper.time_zone.name)}{how}\n"
    else:
        yield '# time_zone = "Europe/Berlin"  # of dates that name none: no page names it, UTC is assumed\n'


def _missing(wrapper: Wrapper) -> Iterator[str]:
    if wrapper.missing:
        yield "# Not found: " + "\n#            ".join(wrapper.missing) + "\n"


def _forums(draft: Draft) -> str:
    everything = '[discover]                     # watch all that the index lists\ninclude = ["*"]\nexclude = []\n'
    if len(draft.forums) > _MOST_FORUMS:
        return f"\n# The index lists {len(draft.forums)} forums.\n{everything}"
    if draft.forums:
        lines = "\n".join(f"    {_quoted(forum.id)},{_about(forum)}" for forum in draft.forums)
        commented = "".join(f"# {line}\n" for line in everything.splitlines())
        return (
            f"\n# The forums to watch: delete those that you do not want.\nforums = [\n{lines}\n]\n"
            + (f"\n# Or in their place, new ones too:\n{commented}" if draft.can_discover else "")
            + _names(draft)
        )
    return '\n# The ids of the forums to watch, as in their addresses, such as ["12", "news"].\nforums = []\n'


def _names(draft: Draft) -> str:
    # A name may be any text of the site: a name that would be read as a variable is left out.
    named = {forum.id: " ".join(forum.name.split()) for forum in draft.forums if VARIABLE not in forum.name}
    lines = "".join(f"{_quoted(id_)} = {_quoted(name)}\n" for id_, name in named.items() if name not in ("", id_))
    return f"\n[names]                        # of the forums, for people\n{lines}" if lines else ""


def _about(forum: ListedForum) -> str:
    threads = f", {forum.threads} threads" if forum.threads is not None else ""
    # TOML refuses control characters, in comments too.
    printable = "".join(one if one.isprintable() else " " for one in forum.name)
    name = " ".join(printable.split()) if forum.name != forum.id else ""
    return f"  # {name}{threads}".rstrip(" #") if name or threads else ""


def _pages(pages: dict[str, Any]) -> Iterator[str]:
    for kind, table in pages.items():
        inner = {key: value for key, value in table.items() if key in ("fields", "post")}
        yield f"\n[pages.{kind}]\n"
        yield from (f"{key} = {_value(value)}\n" for key, value in table.items() if key not in inner)
        for name in ("post", "fields"):
            if inner.get(name):
                yield f"\n[pages.{kind}.{name}]\n"
                yield from (f"{key} = {_value(value)}\n" for key, value in inner[name].items())


def _value(value: Any) -> str:
    """Format a value as TOML, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else _text(value)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _text(value: str) -> str:
    return f"'{value}'" if "'" not in value and value.isprintable() else json.dumps(value, ensure_ascii=False)


MOST = 5
"""Threads."""
_TRIED = 3  # forums of which one has threads to show


class PreviewedThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread as the file reads its list and its first page: `posts` with the opening one; `without`: fields that some posts
    lack; `problem`: the reason why nothing was read; `fault`: a sign that it is read wrongly.
    """

    id: str
    title: str | None
    url: str
    posts: int = 0
    author: str | None = None
    published: datetime | None = None
    text: str | None = None
    replies: int | None = None
    next: str | None = None
    without: tuple[str, ...] = ()
    problem: str | None = None
    fault: str | None = None


class Preview(NamedTuple):
    """Threads as the new file reads them, or the reason why it reads none."""

    threads: list[PreviewedThread]
    problem: str | None
    fault: str | None = None
    """Sign that the list is read wrongly."""
    is_by_creation: bool = False
    """True for a list in the order in which its threads were made."""

    @property
    def is_read(self) -> bool:
        """Return True if a thread was read."""
        return any(thread.problem is None and thread.fault is None for thread in self.threads)

    @property
    def is_right(self) -> bool:
        """Return True if a thread was read, and nothing looks wrong."""
        return self.is_read and self.wrong is None

    @property
    def posts(self) -> int:
        """Return the number of posts that were read."""
        return sum(thread.posts for thread in self.threads)

    @property
    def wrong(self) -> str | None:
        """Return the reason why the file looks wrong: of its list, or of most of the threads."""
        bad = [thread for thread in self.threads if thread.fault is not None]
        if self.fault is None and len(bad) * 2 > len(self.threads):
            return f"{len(bad)} of {len(self.threads)} threads look wrong, such as {bad[0].url}: {bad[0].fault}"
        return self.fault


def site_of_draft(draft: Draft) -> Site:
    """Return the site of a file with this content. Raises SiteError."""
    return site_of(load.read(Path(f"{draft.name}.toml"), tomllib.loads(text_of(draft))))


async def preview_of(draft: Draft, get: Get) -> Preview:
    """Read five threads as the file will read them."""
    if not draft.forums:
        return Preview([], None)
    try:
        site = site_of_draft(draft)
    except SiteError as exc:
        return Preview([], str(exc))
    tried = [draft.wrapper.tried] if draft.wrapper else [forum.id for forum in draft.forums[:_TRIED]]
    shown = Preview([], None)
    for forum in tried:  # the first one may be empty
        shown = await preview(site, get, forum)
        if shown.threads:
            break
    return shown


async def preview(site: Site, get: Get, forum: str) -> Preview:
    """Return up to five threads of a forum, or none and the reason."""
    try:
        response = await get(site.list_url(forum))
        listed = read_strictly(site, response, Asked(kind="list", forum=forum))
    except (FetchFailed, SiteError) as exc:
        return Preview([], str(exc))
    if not isinstance(listed, ListPage) or not listed.threads:
        return Preview([], f"{site.list_url(forum)}: no threads")
    step = max(1, len(listed.threads) // MOST)
    titles = {one.title for one in listed.threads if one.title}
    ids: dict[str, str] = {}
    threads = [await _thread(site, get, forum, thread, titles, ids) for thread in listed.threads[::step][:MOST]]
    faults = faults_of_list(listed, seen_without_file(response), by_activity=site.pages.list.order == "activity")
    return Preview(threads, None, next(faults, None), is_by_creation(listed.threads))


def read_strictly(site: Site, response: TextResponse, asked: Asked) -> AnyPage:
    """Read a page; one that takes longer than usual is not a good example. Raises SiteError."""
    with strictly():
        return read(site, response, asked)


def _faults(thread: ListedThread, page: CommentsPage, titles: set[str], response: TextResponse) -> Iterator[str]:
    seen = seen_without_file(response)
    return faults_of_thread(thread, page, titles, seen, response.text if seen is not None else "")


async def _thread(
    site: Site, get: Get, forum: str, thread: ListedThread, titles: set[str], ids: dict[str, str]
) -> PreviewedThread:
    """Read a thread's first page. `ids`: those of the comments of the threads before, each with its thread."""
    url = site.url("comments", forum=forum, thread=thread.id, url=thread.url)
    shown = PreviewedThread(id=thread.id, title=thread.title, url=url, replies=thread.reply_count)
    try:
        asked = Asked(kind="comments", forum=forum, thread=thread.id, url=thread.url)
        response = await get(url)
        page = read_strictly(site, response, asked)
    except (FetchFailed, SiteError) as exc:
        return msgspec.structs.replace(shown, problem=str(exc).removeprefix(f"{url}: "))
    if not isinstance(page, CommentsPage):
        return shown
    posts: list[ReadPost | ReadComment] = [*([page.post] if page.post else []), *page.comments]
    first = posts[0] if posts else None
    shared = next((one.id for one in page.comments if one.id in ids), None)
    same = f"it has a comment {shared}, as thread {ids[shared]}: look at `id`" if shared is not None else None
    ids |= {one.id: thread.id for one in page.comments}
    return msgspec.structs.replace(
        shown,
        posts=len(posts),
        author=first.author if first else thread.author,
        published=first.created_at if first else thread.created_at,
        text=first.body if first else None,
        next=page.next,
        without=tuple(
            name
            for name in ("author", "created_at", "body")
            if any(not getattr(post, name) for post in posts if not post.deleted)
        ),
        problem=None if posts else "no posts",
        fault=next(_faults(thread, page, titles, response), same),
    )
