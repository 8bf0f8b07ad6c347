"""`trawl roll`: a new version of the crawlers' code, one crawler after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import redis

    from redis_components.rolls import Roll

LOOK_S = 0.5
STUCK_S = 30.0  # without anybody who goes on with it


def roll(
    services: Annotated[list[str] | None, typer.Argument(metavar="[SERVICE]...", help="Services; all without names.")] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the end, and say how far it is.")] = True,
    abort: Annotated[bool, typer.Option("--abort", help="Stop the roll that is under way; forget one that failed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the roll as one line of JSON, at its end.")] = False,
) -> int:
    """Replace running crawlers by fresh processes, one after the other: how new code and new settings come into use.

    Each crawler finishes its pages and gives back what it holds; the next one goes when its successor is well: its reactor
    answers, and it has fetched a page, or been running for 3 s. So the fleet is never smaller than its size minus one, and
    nothing is lost or fetched twice. When a new process crashes, is refused, or is not well within two minutes, the roll stops:
    exit code 1, and the other crawlers go on as they are. `reconcile_fleet` does the work: Ctrl-C ends only the waiting.

    **Examples:**

        trawl roll
        trawl roll forum_detail --no-wait
        trawl roll --abort
    """
    from redis_components.errors import ConfigError
    from redis_components.registry import Registry
    from redis_components.rolls import RollNote
    from workers.roll import abort_roll, start_roll

    from .redis_access import redis_client

    if abort and services:
        raise ConfigError("--abort ends the roll that is under way: name no services with it")
    with redis_client() as client:
        note = RollNote(client)
        if abort:
            stopped = abort_roll(note)
            _show(stopped, as_json, "aborted" if stopped else "no roll is under way")
            return 0
        begun = start_roll(Registry(client), note, services or [])
        if not wait or not begun.total:
            _show(begun, as_json, f"begun: {begun.total} crawlers to replace" if begun.total else "no crawler runs there")
            return 0
        return _watch(client, begun, as_json)


def _watch(client: redis.Redis, begun: Roll, as_json: bool) -> int:
    """Wait for the end of this roll; the exit code."""
    from redis_components.errors import TrawlError
    from redis_components.registry import Registry
    from redis_components.rolls import RollNote, RollState

    note, registry, said = RollNote(client), Registry(client), ""
    now: Roll | None = begun
    while now and now.id == begun.id and now.state is RollState.ROLLING:
        if registry.now() - now.seen_at > STUCK_S:
            raise TrawlError(f"nobody goes on with the roll since {STUCK_S:.0f} s: start beat, and a worker on the queue control")
        if not as_json and (line := now.sentence()) != said:
            print(said := line, flush=True)
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
    from .output import iso

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
    from .output import print_json

    if as_json:
        print_json(roll_json(roll) if roll else None)
    else:
        print(line)
