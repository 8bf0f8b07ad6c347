"""`trawl history`: the crawler processes that there were, and how each of them ended."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
import typer

from cli.access.database import NoData, stored_data
from cli.access.names import check_ran, parse_target
from cli.access.redis import redis_client, running_url
from cli.access.values import parse_since
from cli.views.columns import Column, FittedTable, figures
from cli.views.output import complain, console, duration, print_json, say
from forums.storage import RunRow, Wanted
from forums.storage.write.event_log import LOST
from forums.writer.run_history import latest
from redis_components.errors import ConfigError, RedisUnavailable, did_you_mean
from workers.node.crawl_once_result import OnceOutcome
from workers.process.exit_kinds import ExitKind, signal_name

RUNNING = "running"


def history(
    target: Annotated[
        str | None,
        typer.Argument(metavar="SERVICE|SLOT", help="Only of this service, or of one slot of it.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Only processes started since then: 2h, 7d, 2026-01-31.", show_default=False),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Only processes with this kind of end: crashed, hung, killed, lost, ...", show_default=False
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100_000, help="Show at most this many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Show crawler processes, newest first: start, duration, pages, items, peak memory, how each ended, and why.

    The list includes crawlers that were started by hand, and crawls by `crawl_once`. **lost**: the node died, so the end was
    never reported. The database keeps the history for TRAWL_HISTORY_DAYS.

    **Examples:**

        trawl history
        trawl history forum_detail/2 --since 1d
        trawl history --kind crashed -n 100 --json
    """
    spider, number = parse_target(target) if target else (None, None)
    moment = parse_since(since) if since else None
    found = _look(Wanted(spider=spider, number=number, outcome=_kind(kind), since=moment), limit)
    if not found and spider is not None and not _look(Wanted(spider=spider), 1):
        check_ran(spider)
    if as_json:
        print_json([_json(run) for run in found])
    elif found:
        console().print(history_table(found))
    else:
        say("No crawler process matches.")
    return 0


def _kind(text: str | None) -> str | None:
    """Raises ConfigError for what no run can have."""
    known = sorted({*(kind.label for kind in ExitKind), *OnceOutcome, LOST})
    if text is not None and text not in known:
        raise ConfigError(f"--kind {text!r} is unknown: write one of {', '.join(known)}{did_you_mean(text, known)}")
    return text


def _look(wanted: Wanted, limit: int) -> list[RunRow]:

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
                complain(f"{error}; this is what is stored")
        return latest(database, None, wanted, limit)


def history_table(found: list[RunRow]) -> FittedTable:
    """One line per process."""
    columns = (
        Column(name="started"),
        Column(name="took", rank=1),
        Column(name="crawler"),
        Column(name="end"),
        *figures("pages", rank=2),
        *figures("items", rank=3),
        *figures("peak", rank=4),
        Column(name="node", least=10, rank=5),
        Column(name="why", least=25, rank=6, below=True),
    )
    rows = [
        (
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
        for run in found
    ]
    return FittedTable(columns, rows)


def name_of(run: RunRow) -> str:
    """`forum_detail/2`, `forum_list/hand-4711`, `news/once`."""
    return f"{run.spider}/{run.number if run.number is not None else f'hand-{run.pid}' if run.by == 'hand' else run.by}"


def _end(run: RunRow) -> str:

    if run.exit_code is not None and run.exit_code < 0:
        return f"{run.outcome} ({signal_name(-run.exit_code)})"
    return run.outcome or RUNNING


def _seconds(run: RunRow) -> float | None:
    """How long it took, or takes; None when nobody knows."""
    until = run.ended_at or (datetime.now(UTC) if run.outcome is None else None)
    return (until - run.started_at).total_seconds() if until else None


def _json(run: RunRow) -> dict[str, Any]:

    fields = msgspec.to_builtins(run)
    seconds = _seconds(run)
    return {
        "crawler": name_of(run),
        **{name: value for name, value in fields.items() if name not in ("scraped", "told_at")},
        "outcome": run.outcome or RUNNING,
        "seconds": None if seconds is None else round(seconds, 3),
        "items": run.scraped,
    }
