"""`trawl history`: the crawler processes that there were, and how each of them ended."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from workers.storage import RunRow, Wanted

RUNNING = "running"


def history(
    target: Annotated[
        str | None,
        typer.Argument(metavar="[SERVICE|SLOT]", help="Only of this service, or of one slot of it.", show_default=False),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="WHEN", help="Only those begun since then: 2h, 7d, 2026-01-31.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only those that ended so: crashed, hung, killed, lost, ...", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="At most so many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Show crawler processes, the youngest first: when, for how long, how each ended, what it did, and why.

    One line for each process, also for crawlers that somebody started by hand and for crawls by `crawl_once`. **lost**: its node
    died, and nobody was left to tell. It is kept in the database for TRAWL_HISTORY_DAYS.

    **Examples:**

        trawl history
        trawl history forum_detail/2 --since 1d
        trawl history --kind crashed -n 100 --json
    """
    from workers.storage import Wanted

    from .output import console, print_json
    from .targets import parse_target
    from .times import parse_since

    spider, number = parse_target(target) if target else (None, None)
    moment = parse_since(since) if since else None
    found = _look(Wanted(spider=spider, number=number, outcome=_kind(kind), since=moment), limit)
    if as_json:
        print_json([_json(run) for run in found])
    elif found:
        console().print(_table(found))
    else:
        print("No crawler has run, or none that fits.")
    return 0


def _kind(text: str | None) -> str | None:
    """Raises ConfigError for what no run can have."""
    from redis_components.errors import ConfigError
    from workers.exits import ExitKind
    from workers.once_outcome import OnceOutcome
    from workers.storage.runs import LOST

    known = sorted({*(kind.label for kind in ExitKind), *OnceOutcome, LOST})
    if text is not None and text not in known:
        raise ConfigError(f"--kind {text!r} is no kind of end: write {', '.join(known)}")
    return text


def _look(wanted: Wanted, limit: int) -> list[RunRow]:
    from redis_components.errors import RedisUnavailable
    from workers.history import latest

    from .redis_access import redis_client, running_url
    from .stored_data import NoData, stored_data

    url = running_url()
    with ExitStack() as stack:
        try:
            database = stack.enter_context(stored_data())
        except NoData:
            if url is None:
                raise
            database = None
        if url:
            try:
                with redis_client(url) as client:
                    return latest(database, client, wanted, limit)
            except RedisUnavailable as error:
                if database is None:
                    raise
                print(f"trawl: {error}; this is what is stored", file=sys.stderr)
        return latest(database, None, wanted, limit)


def _table(found: list[RunRow]) -> Table:
    from .output import duration, plain_table

    shown = plain_table()
    for name in ("started", "took", "crawler", "end"):
        shown.add_column(name, no_wrap=True)
    for name in ("pages", "items", "peak"):
        shown.add_column(name, justify="right", no_wrap=True)
    for name in ("node", "why"):
        shown.add_column(name, overflow="fold")
    for run in found:
        shown.add_row(
            run.started_at.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
            duration(seconds) if (seconds := _seconds(run)) is not None else "-",
            name_of(run),
            _end(run),
            f"{run.pages:,}",
            f"{run.scraped:,}",
            f"{run.peak_rss_bytes / 2**20:,.0f} MiB" if run.peak_rss_bytes else "-",
            run.node,
            run.reason or "",
        )
    return shown


def name_of(run: RunRow) -> str:
    """`forum_detail/2`, `forum_list/hand-4711`, `news/once`."""
    return f"{run.spider}/{run.number if run.number is not None else f'hand-{run.pid}' if run.by == 'hand' else run.by}"


def _end(run: RunRow) -> str:
    from workers.exits import signal_name

    if run.exit_code is not None and run.exit_code < 0:
        return f"{run.outcome} ({signal_name(-run.exit_code)})"
    return run.outcome or RUNNING


def _seconds(run: RunRow) -> float | None:
    """How long it took, or takes; None when nobody knows."""
    from datetime import UTC, datetime

    until = run.ended_at or (datetime.now(UTC) if run.outcome is None else None)
    return (until - run.started_at).total_seconds() if until else None


def _json(run: RunRow) -> dict[str, Any]:
    import msgspec

    fields = msgspec.to_builtins(run)
    seconds = _seconds(run)
    return {
        "crawler": name_of(run),
        **{name: value for name, value in fields.items() if name not in ("scraped", "told_at")},
        "outcome": run.outcome or RUNNING,
        "seconds": None if seconds is None else round(seconds, 3),
        "items": run.scraped,
    }
