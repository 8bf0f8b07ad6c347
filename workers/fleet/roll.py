"""Starts, aborts and advances the fleet's roll (operators, and `reconcile_fleet`). `workers.fleet.roll_policy` decides."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace

from redis_components.errors import FleetBusy
from workers.state.notes import Note
from workers.state.registry import Registry, SlotCommand, SlotCommandKind, SlotView
from workers.state.rolls import Roll, RollNote, RollState

from .roll_policy import abort, advance, begin
from .sizes import desired_fleet, unknown_service


def start_roll(registry: Registry, note: RollNote, services: Collection[str] = ()) -> Roll:
    """Begin to replace the crawlers of these services, of all without names; where none runs, there is nothing to begin.

    Raises ConfigError for an unknown service, FleetBusy while another roll is under way.
    """
    desired = desired_fleet(registry)
    for service in services:
        if service not in desired:
            raise unknown_service(service, desired)
    running = note.read()
    if running and running.state is RollState.ROLLING:
        raise FleetBusy(_busy(running))
    views = registry.slots(desired, registry.crawlers())
    roll = begin(secrets.token_hex(4), services or desired, desired, views, registry.now())
    if not roll.total:
        return replace(roll, state=RollState.DONE)
    if not note.write(roll):
        raise FleetBusy("another roll has just been started: see trawl status")
    return roll


def abort_roll(note: RollNote) -> Roll | None:
    """Stop the roll that is under way, and clear away one that failed; the roll, None where there is none to stop."""
    while (roll := note.read()) and roll.state in (RollState.ROLLING, RollState.FAILED):
        if note.write(stopped := abort(roll, "aborted by an operator")):
            return stopped
    return None


def go_on(
    registry: Registry,
    note: RollNote,
    desired: Mapping[str, int],
    live: Iterable[SlotView],
    leaving: Collection[SlotView],
    stopped: Container[tuple[str, int]],
) -> Roll | None:
    """Take the next step of a roll that is under way; return its present state. Concurrent callers have the effect of one.

    `leaving` are the slots whose holders have an order to retire: a second order would replace it. `stopped` are slots that must
    be empty although they are desired.
    """
    roll = note.read()
    if roll is None or roll.state is not RollState.ROLLING:
        return None
    new, slot = advance(roll, desired, live, registry.now(), stopped)
    if not note.write(new):
        return None  # another beat was quicker, or it was aborted
    if slot and slot not in leaving:
        registry.order(slot, SlotCommand(word=SlotCommandKind.RELOAD, reason=new.id))
    if new.state is RollState.FAILED:
        registry.report_error("roll", new.reason or "failed")
    if new.state is not RollState.ROLLING:
        registry.add_note(Note(about="fleet", type="changed", said=f"roll {new.sentence()}", at=registry.now()))
    return new


def _busy(roll: Roll) -> str:
    done = f"{len(roll.replaced)} of {roll.total} crawlers replaced"
    return f"a roll of {', '.join(roll.services)} is under way ({done}): wait for it, or end it with trawl roll --abort"
