"""The command `python -m demo`: runs the steps, prints its progress and the report, stops everything, returns the exit code."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator

import redis
from rich.console import Console
from rich.text import Text

from cli.processes import Interrupts
from cli.views.tables import console as make_console
from redis_components.connection import explain
from redis_components.embedded import redis_url
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import load_env_file, variable

from .compare import Coverage
from .processes import DemoOptions, DemoProcesses, RunFolder, trawl_command
from .progress import Progress, addresses, clock
from .steps import DemoSteps

TICK_S = 0.2
INTRODUCTION = """\
A forum lives while it is read by Scrapy crawlers that Celery launches and that share one Redis: people post, edit and delete.
A crawler will be killed. In the end every post and comment has to be in the database, once, and every edit and deletion.
"""
DONE, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130


def run(interrupts: Interrupts) -> int:
    """Run the demo; return the exit code."""
    console = make_console()
    try:
        load_env_file()
        options = DemoOptions.read()
        folder = RunFolder.fresh()
        steps = DemoSteps(Progress(DemoProcesses(options, folder), console))
    except TrawlError as error:
        return _failed(error)
    code = FAILED
    try:
        code = _run_steps(steps, console, interrupts)
        if options.keep and not interrupts.asked:
            _keep(steps, console, interrupts)
    except (TrawlError, redis.RedisError, OSError) as error:
        code = _failed(error)
        print(f"the logs of this run are in {folder.shown}/logs", file=sys.stderr)
    finally:
        console.print("\nStopping everything ...", style="dim")
        steps.processes.stop(hurry=lambda: interrupts.impatient)
        console.print("Everything is stopped.", style="dim")
    return code


def _run_steps(steps: DemoSteps, console: Console, interrupts: Interrupts) -> int:
    console.print(INTRODUCTION)
    for _ in steps.run():
        steps.progress.read()
        if interrupts.asked:
            return INTERRUPTED
        steps.processes.tend()
        time.sleep(TICK_S)
    print_report(console, steps)
    assert steps.coverage
    return DONE if all(one.complete for one in steps.coverage) else FAILED


def _keep(steps: DemoSteps, console: Console, interrupts: Interrupts) -> None:
    """Leave everything running, the forum alive, until Ctrl-C."""
    processes = steps.processes
    processes.forum.control(rate=2)
    console.print()
    console.print(Text("Everything goes on, and the forum lives again, until Ctrl-C. Look around:", style="bold"))
    trawl = trawl_command()
    for what, how in (
        *addresses(processes),
        ("forum", processes.forum.url),
        ("terminal", processes.folder.terminal),
        ("fleet", f"{trawl} status --watch"),
        ("boards", f"{trawl} forums"),
        ("more", f"{trawl} scale forum_detail=2"),
        ("events", f"write {processes.folder.shown}/trawl.toml (docs/events.md)"),
    ):
        _row(console, f"  {what}", how)
    while not interrupts.asked:
        processes.tend()
        time.sleep(TICK_S)


def _failed(error: Exception) -> int:
    if variable("TRAWL_DEBUG"):
        traceback.print_exc()
    if isinstance(error, redis.RedisError):
        error = explain(error, redis_url())
    print(f"demo: {' '.join(str(error).split())}", file=sys.stderr)
    return WRONG_USE if isinstance(error, ConfigError) else FAILED


IDS_SHOWN = 5


def print_report(console: Console, steps: DemoSteps) -> None:
    """Print coverage, figures, and the location of the data."""
    assert steps.coverage
    console.print()
    print_coverage(console, steps.coverage)
    console.print()
    for what, text in _figures(steps):
        _row(console, what, text)
    folder = steps.processes.folder
    console.print()
    _row(console, "the data", f"{folder.shown}/trawl.sqlite")
    _row(console, "", f"TRAWL_DATA_DIR={folder.shown} {trawl_command()} export comments --format csv | head")
    _row(console, "the logs", f"{folder.shown}/logs")


def _row(console: Console, what: str, text: str) -> None:
    console.print(Text.assemble((f"{what:<16}", "bold"), text), soft_wrap=True)


def print_coverage(console: Console, coverage: tuple[Coverage, ...]) -> None:
    """Print a line for each table, and for each fault its first ids."""
    for one in coverage:
        console.print(Text(one.sentence(), style="bold green" if one.complete else "bold red"), soft_wrap=True)
        for what, ids in one.unlike().items():
            more = f" and {len(ids) - IDS_SHOWN:,} more" if len(ids) > IDS_SHOWN else ""
            console.print(f"{what} {one.table}: {', '.join(ids[:IDS_SHOWN])}{more}", style="red", soft_wrap=True)


def _figures(steps: DemoSteps) -> Iterator[tuple[str, str]]:
    fleet, forum = steps.progress.fleet, steps.progress.forum
    assert fleet
    assert forum
    refused = sum(served.get("429", 0) + served.get("500", 0) for served in forum["served"].values())
    yield "pages", f"{forum['total']:,} fetched"
    yield "refused", f"{refused:,} of them with 500 or 429, on purpose: each was tried again"
    dead, bad = sum(one.crawl.dead for one in fleet.services), sum(one.items_refused for one in fleet.services)
    yield "given up", f"{dead:,} requests, {bad:,} items"
    if killed := steps.killed:
        reclaimed = sum(one.crawl.reclaimed for one in fleet.services)
        yield "killed", f"{killed.crawler.name} at {clock(killed.at_s)}; {reclaimed:,} leases taken back"
        yield "crawling again", f"{killed.recovered_after_s:.1f} s after the kill"
    edits, deletions = steps.progress.noticed
    by_then = f"{steps.noticed_following:,} of them while it lived, the others by a last check of every thread"
    yield "noticed", f"{edits:,} edits and {deletions:,} deletions, {by_then}"
    yield "followed", f"with {steps.requests_following:,} requests in {steps.processes.options.demo_live_s:.0f} s"
    yield "wall time", f"{steps.progress.clock_s:.0f} s"
