"""`trawl sites check`: a page of each kind as read with a site file."""

from __future__ import annotations

import asyncio

import msgspec
from rich.text import Text

from cli.names import visit_limits
from cli.views.output import counted, echo, print_json, working
from cli.views.tables import Columns, console, shortened, show
from forums.sites import Site
from forums.sites.check import Trial, TriedField, TriedPage
from forums.sites.http.fetch import Visitor
from forums.sites.load import load_file

from .sites import path_of

_EXAMPLE = 60  # characters


def run(site: str, *, live: bool, forum: str | None, thread: str | None, as_json: bool) -> int:
    """Check a site; return the exit code, 0 or 1. Raises SiteError with all faults of the file."""
    path = path_of(site)
    known = load_file(path)
    tried: list[TriedPage] = []
    if live:
        with working(f"reading a page of each kind at {known.base_url}", shown=not as_json):
            tried = asyncio.run(_try(known, forum, thread))
    bad = any(page.problem for page in tried)
    if as_json:
        print_json({"file": str(path), "site": known.name, "pages": msgspec.to_builtins(tried)})
        return int(bad)
    echo(f"{path} is right: {_summary(known)}")
    for page in tried:
        _show(page)
    return int(bad)


async def _try(site: Site, forum: str | None, thread: str | None) -> list[TriedPage]:
    async with Visitor(site, limits=visit_limits(str(site.base_url), site.name)) as visitor:
        return await Trial(site, visitor).run(forum, thread)


def _summary(site: Site) -> str:
    forums = counted(len(site.forums), "forum") if site.forums else ""
    watched = " and ".join(part for part in (forums, "what the index lists" if site.discover else "") if part)
    return f"{watched} of {site.base_url}{f', profile {site.profile}' if site.profile else ''}"


def _show(page: TriedPage) -> None:

    echo(f"\n{page.kind}: {page.url}")
    if page.fields:
        found = [page.what if page.rows == 1 and page.kind in ("thread", "post") else f"{page.rows} {page.what}"]
        found += [f"{page.pages} pages"] if page.pages is not None else []
        found += [f"{page.total} in all"] if page.total is not None else []
        found += [f"next: {page.next}"] if page.next else []
        echo("  " + ", ".join(found))
        columns: Columns = {
            "  field": lambda field: f"  {field.name}",
            "empty": _empty,
            "example": lambda field: shortened(field.example or "", _EXAMPLE),
        }
        show(page.fields, columns, False)
    if page.problem:
        console().print(Text(f"  wrong: {page.problem}", style="red"))
    if page.hint:
        console().print(Text(f"  but: {page.hint}", style="yellow"))


def _empty(field: TriedField) -> Text:
    share = f"{100 * field.empty / field.rows:.0f} %" if field.rows else "-"
    return Text(share, style="red" if field.rows == field.empty else "yellow" if field.empty else "")
