"""`trawl roll`: a new version of the crawlers' code, one crawler after the other."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import redis
import typer

from cli.access.redis import redis_client
from cli.views.output import iso, print_json, say
from cli.views.progress import progress_bar
from redis_components.errors import ConfigError, TrawlError
from workers.fleet.roll import abort_roll, start_roll
from workers.state.registry import Registry
from workers.state.rolls import Roll, RollNote, RollState

LOOK_S = 0.5
STUCK_S = 30.0  # without anybody who goes on with it


def roll(
    services: Annotated[list[str] | None, typer.Argument(metavar="SERVICE", help="Services; by default all.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end and show progress.")] = True,
    abort: Annotated[bool, typer.Option("--abort", help="Stop the running roll, or clear a failed one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the finished roll as one line of JSON.")] = False,
) -> int:
    """Replace running crawlers by new processes, one after the other, for example to use new code or settings.

    Each crawler finishes its pages and returns its leases. The next crawler is replaced when the new process is healthy: its
    reactor answers, and it has fetched a page or run for 3 s. So at most one crawler is missing at a time, and nothing is lost
    or fetched twice. When a new process crashes, is refused, or is not healthy within two minutes, the roll fails with
    exit code 1, and the other crawlers keep running. The task `reconcile_fleet` does the work: Ctrl-C only ends the waiting.

    **Examples:**

        trawl roll
        trawl roll forum_detail --no-wait
        trawl roll --abort
    """
    if abort and services:
        raise ConfigError("--abort cannot be combined with services: it stops the running roll")
    with redis_client() as client:
        note = RollNote(client)
        if abort:
            stopped = abort_roll(note)
            _show(stopped, as_json, "aborted" if stopped else "no roll is running")
            return 0
        begun = start_roll(Registry(client), note, services or [])
        if not wait or not begun.total:
            _show(begun, as_json, f"begun: {begun.total} crawlers to replace" if begun.total else "no crawler runs there")
            return 0
        return watch(client, begun, as_json)


def watch(client: redis.Redis, begun: Roll, as_json: bool) -> int:
    """Wait for the end of this roll; the exit code."""
    note, registry, said = RollNote(client), Registry(client), ""
    now: Roll | None = begun
    with progress_bar("roll", "replaced", shown=not as_json) as tell:
        while now and now.id == begun.id and now.state is RollState.ROLLING:
            if registry.now() - now.seen_at > STUCK_S:
                raise TrawlError(f"the roll has not advanced for {STUCK_S:.0f} s: start beat, and a worker on the queue control")
            tell(len(now.replaced), now.total)
            if not as_json and not sys.stderr.isatty() and (line := now.sentence()) != said:
                say(said := line)
            time.sleep(LOOK_S)
            now = note.read()
    if now is None or now.id != begun.id:
        _show(
            now, as_json, "another roll has begun meanwhile" if now else "Redis knows of no roll any more: it has lost its data"
        )
        return 1
    _show(now, as_json, now.sentence())
    return 0 if now.state is RollState.DONE else 1


def roll_json(roll: Roll) -> dict[str, Any]:
    """A roll as `--json` shows it."""
    return {
        "id": roll.id,
        "services": list(roll.services),
        "state": roll.state,
        "started_at": iso(roll.started_at),
        "waiting": [step.name for step in roll.waiting],
        "current": roll.current.name if roll.current else None,
        "replaced": [step.name for step in roll.replaced],
        "left_out": list(roll.left_out),
        "reason": roll.reason,
    }


def _show(roll: Roll | None, as_json: bool, line: str) -> None:

    if as_json:
        print_json(roll_json(roll) if roll else None)
    else:
        say(line)
