"""`trawl sites reparse`: reads kept pages again, after a site file was corrected."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

import typer

from cli.access.names import either, parse_since
from cli.access.redis import redis_client, running_url
from cli.views.options import AsJson, Since, SiteArgument, SiteOption
from cli.views.output import complain, echo, print_json
from cli.views.progress import progress_bar
from cli.views.tables import PlainTable, console, plain_table
from forums.raw_pages.reparse import KINDS, ReparseReport, stored_days
from forums.raw_pages.reparse import reparse as read_again
from forums.sites import load_site
from forums.storage import Database
from forums.writer.store import check_claim
from redis_components.errors import ConfigError
from workers.raw_pages import raw_dir
from workers.raw_pages.store import size_of


def reparse(
    site: SiteArgument = None,
    of_site: SiteOption = None,
    since: Since = None,
    kind: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="Only pages of this kind: index, list, thread, comments.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Store nothing; show the changes.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Store even if no text was found.")] = False,
    as_json: AsJson = False,
) -> int:
    """Read the raw pages that are kept of a site again, and store the results. Nothing is fetched.

    Pages are kept when `[raw] keep_days` of the site file is set, on the disk of the node that fetched them: run this command on
    each node. A row keeps the time at which its page was fetched: it replaces wrong values, does not count as an edit by
    the author, and never overwrites a later fetch. The command is safe to repeat.

    If none of the first thousand rows has a text, the selector is probably wrong, and nothing is stored (see --force). Exit code
    1: no pages were found, some could not be read, or the rows of a kind lost their bodies.

    **Examples:**

        trawl sites reparse books --since 3d --dry-run
        trawl sites reparse --site books --kind comments
    """
    if unknown := [name for name in kind or () if name not in KINDS]:
        raise ConfigError(f"--kind {unknown[0]!r}: kinds of pages are {', '.join(KINDS)}")
    if (site := either(site, of_site)) is None:
        raise ConfigError("name a site: trawl sites reparse SITE")
    declared = load_site(site)
    moment = parse_since(since) if since else None
    if not stored_days(raw_dir(), site, moment):
        keeps = declared.raw.keep_days
        why = f"it keeps them for {keeps} days" if keeps else "[raw] keep_days is 0, so none are kept"
        complain(f"no pages of {site} in {raw_dir() / site}{' since then' if since else ''}: {why}")
        return 1
    database = Database.from_url()
    if url := running_url():
        with redis_client(url) as client, closing(database):
            check_claim(client, database)
    with database:
        options: dict[str, Any] = {"since": moment, "kinds": tuple(kind or KINDS), "dry_run": dry_run, "force": force}
        with progress_bar(f"reparse of {site}", "pages", shown=not as_json) as progress:
            report = read_again(
                database, raw_dir(), declared, **options, progress=lambda report: progress(sum(report.pages.values()))
            )
    if as_json:
        print_json(_json(report, dry_run=dry_run, size=size_of(raw_dir(), site)))
    else:
        console().print(*_tables(report), sep="\n\n")
        echo(_sentence(report, dry_run=dry_run))
    lost = list(report.lost())
    for line in lost:
        complain(line)
    return 1 if report.bad or report.refused or lost or not report.pages else 0


def _rate(report: ReparseReport) -> str:
    return f"{report.items / max(report.seconds, 0.001):,.0f} items/s"


def _sentence(report: ReparseReport, *, dry_run: bool) -> str:
    pages = sum(report.pages.values())
    done = "would be stored; nothing was changed (--dry-run)" if dry_run else "stored"
    parts = [f"{pages:,} pages read, {report.items:,} items {done}, {report.seconds:.1f} s, {_rate(report)}"]
    parts += [f"{times:,} pages not read: {reason}" for reason, times in report.bad.most_common()]
    parts += [f"{times:,} items refused: {reason}" for reason, times in report.refused.most_common(20)]
    parts += [f"cut off: {place}" for place in report.cut_off[:20]]
    return "\n".join(parts)


def _tables(report: ReparseReport) -> list[PlainTable]:
    read = plain_table("page", "pages", "rows", "fields with a value")
    for kind, pages in report.pages.items():
        rows = report.rows[kind]
        filled = ", ".join(f"{name} {n / rows:.0%}" for name, n in report.fields[kind].items()) if rows else "-"
        read.add_row(kind, f"{pages:,}", f"{rows:,}", filled)
    changes = plain_table("table", "what changes", "rows")
    for (table, what), times in sorted(report.changes.items()):
        changes.add_row(table, what, f"{times:,}")
    return [read, changes] if report.changes else [read]


def _json(report: ReparseReport, *, dry_run: bool, size: int) -> dict[str, Any]:
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
