"""`trawl sites check`: is the file right, and does it read the site's pages?"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from cli.views.output import console, counted, plain_table, print_json, say
from cli.views.progress import working

from .sites_show import path_of

if TYPE_CHECKING:
    from forums.sites import Site
    from forums.sites.check import TriedPage

    from .sites_stored import StoredSample

_EXAMPLE = 60  # characters
_TEXT = 40  # characters of a row that was stored


def run(site: str, *, live: bool, forum: str | None, thread: str | None, as_json: bool) -> int:
    """Exit code 0 or 1. Raises SiteError for a file that is wrong, with all that is wrong in it."""
    from forum_reader.definition.advice import advice
    from forum_reader.definition.load import load_file

    path = path_of(site)
    known = load_file(path)
    hints = advice(known)
    tried: list[TriedPage] = []
    stored: StoredSample | None = None
    if live:
        with working(f"reading a page of each kind at {known.base_url}", shown=not as_json):
            tried, stored = asyncio.run(_try(known, forum, thread))
    bad = any(page.problem for page in tried) or bool(stored and stored.refused)
    if as_json:
        print_json(_as_json(path, known, hints, tried, stored))
        return int(bad)
    say(f"{path} is right: {_summary(known)}")
    for hint in hints:
        say(f"  but: {hint}")
    for page in tried:
        _show(page)
    if stored:
        _show_stored(stored)
    return int(bad)


async def _try(site: Site, forum: str | None, thread: str | None) -> tuple[list[TriedPage], StoredSample | None]:
    from cli.access.visits import visit_limits
    from forums.sites.check import Trial
    from forums.sites.http.fetch import Visitor

    async with Visitor(site, limits=visit_limits(str(site.base_url), site.name)) as visitor:
        trial = Trial(site, visitor)
        tried = await trial.run(forum, thread)
    read = trial.thread
    if read is None or (read.post is None and not read.comments):
        return tried, None
    from .sites_stored import store_sample

    return tried, await asyncio.to_thread(store_sample, site, read)


def _as_json(path: Path, site: Site, hints: list[str], tried: list[TriedPage], stored: StoredSample | None) -> dict[str, object]:
    import msgspec

    told = {"file": str(path), "site": site.name, "hints": hints, "pages": msgspec.to_builtins(tried)}
    return told | ({"stored": msgspec.to_builtins(stored)} if stored else {})


def _summary(site: Site) -> str:
    forums = counted(len(site.forums), "forum") if site.forums else ""
    watched = " and ".join(part for part in (forums, "what the index lists" if site.discover else "") if part)
    return f"{watched} of {site.base_url}{f', profile {site.profile}' if site.profile else ''}"


def _show(page: TriedPage) -> None:
    from rich.text import Text

    say(f"\n{page.kind}: {page.url}")
    if page.fields:
        found = [page.what if page.rows == 1 and page.kind in ("thread", "post") else f"{page.rows} {page.what}"]
        found += [f"{page.pages} pages"] if page.pages is not None else []
        found += [f"{page.total} in all"] if page.total is not None else []
        found += [f"next: {page.next}"] if page.next else []
        say("  " + ", ".join(found))
        table = plain_table("  field", "empty", "example")
        for field in page.fields:
            share = f"{100 * field.empty / field.rows:.0f} %" if field.rows else "-"
            style = "red" if field.rows == field.empty else "yellow" if field.empty else ""
            example = " ".join((field.example or "").split())
            shown = example if len(example) <= _EXAMPLE else example[: _EXAMPLE - 1] + "…"
            table.add_row(f"  {field.name}", Text(share, style=style), Text(shown))
        console().print(table)
    if page.problem:
        console().print(Text(f"  wrong: {page.problem}", style="red"))
    if page.hint:
        console().print(Text(f"  but: {page.hint}", style="yellow"))


def _show_stored(stored: StoredSample) -> None:
    from rich.text import Text

    say(f"\nstored in a temporary database: {counted(stored.posts, 'post')}, {counted(stored.comments, 'comment')}")
    table = plain_table("  kind", "id", "answers", "author", "date", "text")
    for row in stored.rows:
        text = " ".join(row.body.split())
        shown = text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
        told = (row.id, row.parent_id or "", row.author or "", (row.created_at or "")[:16], shown)
        table.add_row(f"  {row.kind}", *(Text(value) for value in told))
    console().print(table)
    for reason in stored.refused:
        console().print(Text(f"  wrong: it cannot be stored: {reason}", style="red"))
