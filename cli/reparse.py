"""`trawl reparse`: reads kept pages once more, after a site file was mended."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from workers.reparse import Report


def reparse(
    site: Annotated[str, typer.Option(metavar="NAME", help="The site.")],
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only pages fetched since then: 2h, 7d, 2026-01-31.", show_default=False),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Only pages of this kind: index, list, thread, comments.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Store nothing; say what would change.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Store also where not one text was found.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as one line of JSON.")] = False,
) -> int:
    """Read the pages that are kept of a site once more and store what they say now; the site is not asked.

    Pages are kept where `[raw] keep_days` of the site file says so, on the disk of the node that fetched them: where there are
    several nodes, run it on each. What is stored keeps the time at which its page was fetched: it takes the place of what was
    read wrongly, is no edit by its author, and overwrites nothing that was fetched since. Doing it twice does no harm.

    Where the first thousand rows have not one text, the selector is taken to be wrong, and nothing is stored. Exit code 1: there
    are no pages, some could not be read, or no row of a kind has a body any more.

    **Examples:**

        trawl reparse --site books --since 3d --dry-run
        trawl reparse --site books --kind comments
    """
    from redis_components.errors import ConfigError
    from workers.raw import raw_dir
    from workers.raw.places import size_of
    from workers.raw.reading import stored_days
    from workers.reparse import KINDS
    from workers.reparse import reparse as read_again
    from workers.sites import load_site
    from workers.storage import Database

    from .output import console, print_json
    from .times import parse_since

    if unknown := [name for name in kind or () if name not in KINDS]:
        raise ConfigError(f"--kind {unknown[0]!r}: kinds of pages are {', '.join(KINDS)}")
    declared = load_site(site)
    moment = parse_since(since) if since else None
    if not stored_days(raw_dir(), site, moment):
        keeps = declared.raw.keep_days
        why = f"it keeps them for {keeps} days" if keeps else "[raw] keep_days is 0, so none are kept"
        print(f"trawl: no pages of {site} in {raw_dir() / site}{' since then' if since else ''}: {why}", file=sys.stderr)
        return 1
    with Database.from_url() as database:
        options: dict[str, Any] = {"since": moment, "kinds": tuple(kind or KINDS), "dry_run": dry_run, "force": force}
        report = read_again(database, raw_dir(), declared, **options, progress=_say(as_json=as_json))
    if as_json:
        print_json(_json(report, dry_run=dry_run, size=size_of(raw_dir(), site)))
    else:
        console().print(*_tables(report), sep="\n\n")
        print(_sentence(report, dry_run=dry_run))
    lost = list(report.lost())
    for line in lost:
        print(f"trawl: {line}", file=sys.stderr)
    return 1 if report.bad or report.refused or lost or not report.pages else 0


def _say(*, as_json: bool) -> Any:
    """Progress on standard error, once a second."""
    said_at = time.monotonic()

    def progress(report: Report) -> None:
        nonlocal said_at
        if not as_json and time.monotonic() - said_at >= 1:
            said_at = time.monotonic()
            print(f"{sum(report.pages.values()):,} pages, {report.items:,} items, {_rate(report)}", file=sys.stderr)

    return progress


def _rate(report: Report) -> str:
    return f"{report.items / max(report.seconds, 0.001):,.0f} items/s"


def _sentence(report: Report, *, dry_run: bool) -> str:
    pages = sum(report.pages.values())
    done = "would be stored; nothing was changed (--dry-run)" if dry_run else "stored"
    parts = [f"{pages:,} pages read, {report.items:,} items {done}, {report.seconds:.1f} s, {_rate(report)}"]
    parts += [f"{times:,} pages not read: {reason}" for reason, times in report.bad.most_common()]
    parts += [f"{times:,} items refused: {reason}" for reason, times in report.refused.most_common(20)]
    parts += [f"cut off: {place}" for place in report.cut_off[:20]]
    return "\n".join(parts)


def _tables(report: Report) -> list[Table]:
    from .output import plain_table

    read = plain_table("page", "pages", "rows", "fields with a value")
    for kind, pages in report.pages.items():
        rows = report.rows[kind]
        filled = ", ".join(f"{name} {n / rows:.0%}" for name, n in report.fields[kind].items()) if rows else "-"
        read.add_row(kind, f"{pages:,}", f"{rows:,}", filled)
    changes = plain_table("table", "what changes", "rows")
    for (table, what), times in sorted(report.changes.items()):
        changes.add_row(table, what, f"{times:,}")
    return [read, changes] if report.changes else [read]


def _json(report: Report, *, dry_run: bool, size: int) -> dict[str, Any]:
    changes: dict[str, dict[str, int]] = {}
    for (table, what), times in sorted(report.changes.items()):
        changes.setdefault(table, {})[what] = times
    return {
        "site": report.site,
        "dry_run": dry_run,
        "bytes_kept": size,
        "pages": dict(report.pages),
        "rows": dict(report.rows),
        "fields": {kind: dict(fields) for kind, fields in report.fields.items()},
        "items": report.items,
        "changes": changes,
        "not_read": dict(report.bad),
        "refused": dict(report.refused),
        "cut_off": report.cut_off,
        "seconds": round(report.seconds, 3),
    }
