"""`trawl history`: crawler processes, and how each of them ended."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated, Any

import typer

from cli.access import running_client
from cli.names import check_spiders, parse_since, service_or_slot
from cli.views.options import AsJson, Newest, Since
from cli.views.output import duration, in_plain_json
from cli.views.tables import Column, figure, show
from workers.process.exit_kinds import signal_name
from workers.state.history import Run, latest

RUNNING = "running"


def history(
    target: Annotated[
        str | None, typer.Argument(metavar="SERVICE|SLOT", help="Only of this service, or of one slot of it.")
    ] = None,
    since: Since = None,
    limit: Newest = 20,
    as_json: AsJson = False,
) -> int:
    """Show crawler processes, newest first: start, duration, pages, items, peak memory, how each ended, and why.

    The list includes crawlers that were started by hand. **lost**: the node died, so the end was
    never reported. Redis keeps the last 5,000 processes.

    **Examples:**

        trawl history
        trawl history forum_detail/2 --since 1d
        trawl history -n 100 --json | jq '.[] | select(.outcome == "crashed")'
    """
    spider, number = service_or_slot(target) if target else (None, None)
    moment = parse_since(since).timestamp() if since else 0.0
    with running_client(as_json) as client:
        found = latest(client, limit, spider=spider, number=number, since=moment)
        if not found and spider is not None and not latest(client, 1, spider=spider):
            check_spiders(client, [spider])
    rows = [_json(run) for run in found] if as_json else found
    show(rows, COLUMNS, as_json, empty="No crawler process matches.")
    return 0


def name_of(run: Run) -> str:
    """Return `forum_detail/2`, `forum_list/hand-4711`, `news/once`."""
    return f"{run.spider}/{run.number if run.number is not None else f'hand-{run.pid}' if run.by == 'hand' else run.by}"


def _end(run: Run) -> str:
    if run.exit_code is not None and run.exit_code < 0:
        return f"{run.outcome} ({signal_name(-run.exit_code)})"
    return run.outcome or RUNNING


def _seconds(run: Run) -> float | None:
    """Return the seconds that a process took, or has run; None where its end was not seen."""
    until = run.ended_at or (time.time() if run.outcome is None else None)
    return until - run.started_at if until else None


def _took(run: Run) -> str:
    return "-" if (seconds := _seconds(run)) is None else duration(seconds)


COLUMNS = (
    Column("started", lambda run: datetime.fromtimestamp(run.started_at).astimezone().strftime("%Y-%m-%d %H:%M:%S")),
    Column("took", _took, rank=1),
    Column("crawler", name_of),
    Column("end", _end),
    figure("pages", "pages", rank=2),
    figure("items", "items", rank=3),
    figure("peak", lambda run: f"{run.peak_rss_bytes / 2**20:,.0f} MiB" if run.peak_rss_bytes else "-", rank=4),
    Column("node", "node", least=10, rank=5),
    Column("why", lambda run: run.reason or "", least=25, rank=6, below=True),
)


def _json(run: Run) -> dict[str, Any]:
    seconds = _seconds(run)
    return {
        "crawler": name_of(run),
        **in_plain_json(run),
        "outcome": run.outcome or RUNNING,
        "seconds": None if seconds is None else round(seconds, 3),
    }
