"""The command `python -m demo`: runs the steps, draws the screen, prints the report, stops everything, returns the exit code."""

from __future__ import annotations

import sys
import time
import traceback

import redis
from rich.console import Console
from rich.text import Text

from cli.processes.services import Interrupts
from cli.views.tables import console as make_console
from redis_components.connection import explain
from redis_components.embedded import redis_url
from redis_components.errors import ConfigError, TrawlError
from redis_components.server.variables import load_env_file, variable

from .processes import DemoOptions, DemoProcesses, RunFolder, left_over, trawl_command
from .report import print_report
from .screen import Progress, addresses, make_display
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
        options = DemoOptions.from_environment()
        folder = RunFolder.fresh()
        steps = DemoSteps(Progress(DemoProcesses(options, folder)))
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
        if not _clean_up(steps, console, interrupts):
            code = code or FAILED
    return code


def _run_steps(steps: DemoSteps, console: Console, interrupts: Interrupts) -> int:
    console.print(INTRODUCTION)
    with make_display(console) as display:
        for _ in steps.run():
            steps.progress.read()
            display.show(steps.progress)
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
    processes.recheck(True)
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
        console.print(Text.assemble((f"  {what:<10}", "bold"), how), soft_wrap=True)
    while not interrupts.asked:
        processes.tend()
        time.sleep(TICK_S)


def _clean_up(steps: DemoSteps, console: Console, interrupts: Interrupts) -> bool:
    """Stop everything; return True if no process is left."""
    console.print()
    console.print("Stopping everything ...", style="dim")
    steps.processes.stop(hurry=lambda: interrupts.impatient)
    left = left_over(steps.processes.folder.mark)
    for line in left:
        print(f"left behind, and killed now: {line}", file=sys.stderr)
    if not left:
        console.print("Everything is stopped; no process is left.", style="dim")
    return not left


def _failed(error: Exception) -> int:
    if variable("TRAWL_DEBUG"):
        traceback.print_exc()
    if isinstance(error, redis.RedisError):
        error = explain(error, redis_url())
    print(f"demo: {' '.join(str(error).split())}", file=sys.stderr)
    return WRONG_USE if isinstance(error, ConfigError) else FAILED
