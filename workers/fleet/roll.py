"""The fleet's roll: crawlers are replaced by new processes one after the other, each when the one before is healthy.

`start_roll`, `abort_roll` and `go_on` read and write it; `begin` and `advance` decide, with slots and time as arguments.
`tasks.reconcile_fleet` continues the roll at each beat, so it outlives the process that
began it, beats and workers. The next step is decided from the slots as they are; orders are sent until they are seen to be
obeyed, and each supervisor obeys an order once.

    waiting ──▶ current ──▶ replaced         any of them ──▶ left out: its slot is not wanted any more
                   │
                   └──▶ the roll has failed: the new process died, was given up, or is not well in time
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace

from redis_components.errors import FleetBusy, unknown_name
from workers.process.exit_kinds import kind_of_label
from workers.state.registry import CrawlerRecord, CrawlerState, Registry, SlotCommand, SlotCommandKind, SlotView
from workers.state.reports import Note
from workers.state.rolls import Roll, RollNote, RollState, RollStep, Work

from .sizes import desired_fleet

LIVED_S = 3.0  # a new process is well when it has been running for this time, or has fetched a page
STEP_S = 120.0  # longest time for one step, and for the rest of the fleet to be well before it: graceful end, start, back-off
UNSEEN_S = 10.0  # after a longer pause of the beats (Redis or beat was away), that time does not count
COMPARED_S = 60.0  # longest time that the first new crawler gets for pages to compare with the version before
LAG_S = 2.0  # a reactor that takes longer to answer is not well

Slots = Mapping[tuple[str, int], SlotView]


def begin(roll_id: str, services: Collection[str], desired: Mapping[str, int], live: Iterable[SlotView], now: float) -> Roll:
    """Return a roll of all crawlers of these services that have a process; the others will start with a new process anyway."""
    views = sorted((view for view in live if view.spider in services), key=lambda v: (v.spider, v.number))
    steps = [step for view in views if view.number < desired.get(view.spider, 0) and (step := _step(view, now))]
    return Roll(id=roll_id, services=tuple(sorted(services)), waiting=tuple(steps), started_at=now, step_at=now, seen_at=now)


def advance(
    roll: Roll,
    desired: Mapping[str, int],
    live: Iterable[SlotView],
    now: float,
    stopped: Container[tuple[str, int]] = (),
) -> tuple[Roll, SlotView | None]:
    """Return the roll as it is now, and the slot whose holder gets the order to reload (possibly once more).

    `stopped` are slots that must be empty although they are desired.
    """
    if roll.state is not RollState.ROLLING:
        return roll, None
    slots = {(view.spider, view.number): view for view in live}
    roll = _without_unwanted(_without_unseen_time(roll, now), desired, stopped, now)
    if why := _given_up(roll, slots):
        return _failed(roll, why), None
    if roll.before and (why := _work(roll, slots).worse_than(roll.before)):
        return replace(_failed(roll, why), worse=True), None
    if roll.current:
        roll = _judge(roll, roll.current, slots, now)
    if roll.state is RollState.ROLLING and roll.current is None:
        roll = _next(roll, slots, now)
    untouched = roll.current and roll.state is RollState.ROLLING and _is_old(roll.current, _view(slots, roll.current))
    return roll, _view(slots, roll.current) if roll.current and untouched else None


def _next(roll: Roll, slots: Slots, now: float) -> Roll:
    """Begin with the next crawler, once all others are well: the fleet is never below its size minus one."""
    if not roll.waiting:
        return replace(roll, state=RollState.DONE, reason=None)
    first, *rest = roll.waiting
    if ill := [step.name for step in (*rest, *roll.replaced) if not _is_well(_view(slots, step), now)]:
        if now - roll.step_at > STEP_S:
            return _failed(roll, f"{', '.join(ill)}: no crawler runs there since {STEP_S:.0f} s")
        return replace(roll, reason=f"waits for {', '.join(ill)}")
    return replace(roll, current=first, waiting=tuple(rest), step_at=now, healthy_at=None, reason=f"replaces {first.name}")


def _judge(roll: Roll, step: RollStep, slots: Slots, now: float) -> Roll:
    """Judge the successor of the present crawler: well, failed, or still starting."""
    view = _view(slots, step)
    if (record := view.record) and (died := _died(step, record)):
        return _failed(roll, f"{step.name}: the new process {died}")
    if not _is_old(step, view) and _is_well(view, now):
        healthy_at = roll.healthy_at or now
        if now - healthy_at < LIVED_S and not (record and record.pages):
            return replace(roll, healthy_at=healthy_at)
        if now - healthy_at < COMPARED_S and _is_on_trial(roll, slots):
            return replace(roll, healthy_at=healthy_at, reason=f"compares {step.name} with the version before")
        return replace(roll, current=None, replaced=(*roll.replaced, step), step_at=now, healthy_at=None)
    if now - roll.step_at > STEP_S:
        state = f"{record.state}, {record.note or record.last_exit or 'no reason given'}" if record else "no report"
        what = "has not made room" if _is_old(step, view) else f"is not well ({state})"
        return _failed(roll, f"{step.name} {what} {STEP_S:.0f} s after the order to reload")
    return replace(roll, healthy_at=None)


def _is_on_trial(roll: Roll, slots: Slots) -> bool:
    """Return True if the first new crawler has too few pages yet for a comparison with those that were at work before."""
    before = roll.before
    return bool(before and before.pages_per_s and not roll.replaced and not _work(roll, slots).is_enough(before))


def _work(roll: Roll, slots: Slots) -> Work:
    """Return the work of the new crawlers."""
    steps = [*roll.replaced, *([roll.current] if roll.current else [])]
    views = [view for step in steps if not _is_old(step, view := _view(slots, step))]
    return Work.of(view.record for view in views if view.record)


def _died(step: RollStep, record: CrawlerRecord) -> str | None:
    """Return the end of a process that came after the old one, if one has ended: `crashed (exit code 1)`."""
    ended = record.restarts - (0 if record.state is CrawlerState.BACKING_OFF else 1)  # number of the last process that ended
    kind = kind_of_label(record.last_exit_kind)
    # Other ends the new process did not cause: its node was drained, or died, in the middle of the roll.
    return record.last_exit if ended > step.restarts and kind and kind.is_fault else None


def _is_old(step: RollStep, view: SlotView) -> bool:
    """Return True if the process to be replaced is still the last one recorded in its slot."""
    record = view.record
    return view.token == step.token and record is not None and (record.token, record.pid) == (step.token, step.pid)


def _is_well(view: SlotView, now: float) -> bool:
    """Return True if a crawler runs there, its reactor answering."""
    record = view.record
    return (
        record is not None
        and view.token is not None
        and record.token == view.token
        and record.state is CrawlerState.RUNNING
        and record.alive(now)
        and record.lag_s < LAG_S
    )


def _given_up(roll: Roll, slots: Slots) -> str | None:
    for step in (*roll.replaced, *((roll.current,) if roll.current else ()), *roll.waiting):
        record = _view(slots, step).record
        if record and record.state.given_up:
            return f"{step.name} is {record.state} ({record.last_exit or 'it never ran'})"
    return None


def _without_unwanted(roll: Roll, desired: Mapping[str, int], stopped: Container[tuple[str, int]], now: float) -> Roll:
    """Leave out slots that were scaled down, or stopped: there is nothing to replace there."""

    def wanted(step: RollStep) -> bool:
        return step.number < desired.get(step.spider, 0) and (step.spider, step.number) not in stopped

    gone = [step.name for step in (*roll.waiting, *([roll.current] if roll.current else [])) if not wanted(step)]
    if not gone and all(map(wanted, roll.replaced)):
        return roll
    current = roll.current if roll.current and wanted(roll.current) else None
    return replace(
        roll,
        waiting=tuple(filter(wanted, roll.waiting)),
        current=current,
        replaced=tuple(filter(wanted, roll.replaced)),
        left_out=(*roll.left_out, *gone, *(step.name for step in roll.replaced if not wanted(step))),
        step_at=roll.step_at if current is roll.current else now,
    )


def _without_unseen_time(roll: Roll, now: float) -> Roll:
    unseen = now - roll.seen_at
    if 0 <= unseen <= UNSEEN_S:
        return replace(roll, seen_at=now)
    return replace(roll, seen_at=now, step_at=roll.step_at + unseen, healthy_at=None)


def _step(view: SlotView, now: float) -> RollStep | None:
    record = view.record
    if view.token is None or record is None or record.token != view.token or not record.alive(now):
        return None
    return RollStep(spider=view.spider, number=view.number, token=view.token, pid=record.pid, restarts=record.restarts)


def _view(slots: Slots, step: RollStep) -> SlotView:
    return slots.get((step.spider, step.number)) or SlotView(spider=step.spider, number=step.number)


def _failed(roll: Roll, why: str) -> Roll:
    return replace(roll, state=RollState.FAILED, reason=why)


def work_of(registry: Registry, service: str) -> Work:
    """Return the work of the crawlers of a service that run now."""
    now = registry.now()
    return Work.of(one for one in registry.crawlers() if one.spider == service and one.number is not None and one.alive(now))


def start_roll(registry: Registry, note: RollNote, services: Collection[str] = (), *, before: Work | None = None) -> Roll:
    """Begin to replace the crawlers of these services, of all without names; where none runs, there is nothing to begin.

    `before`: it fails where the work of the new crawlers is worse than this.

    Raises ConfigError for an unknown service, FleetBusy while another roll is under way.
    """
    desired = desired_fleet(registry)
    for service in services:
        if service not in desired:
            raise unknown_name("service", service, desired)
    running = note.read()
    if running and running.state is RollState.ROLLING:
        done = f"{len(running.replaced)} of {running.total} crawlers replaced"
        what = f"a roll of {', '.join(running.services)} is under way ({done})"
        raise FleetBusy(f"{what}: wait for it, or end it with trawl roll --abort")
    views = registry.slots(desired, registry.crawlers())
    roll = replace(begin(secrets.token_hex(4), services or desired, desired, views, registry.now()), before=before)
    if not roll.total:
        return replace(roll, state=RollState.DONE)
    if not note.write(roll):
        raise FleetBusy("another roll has just been started: see trawl status")
    return roll


def abort_roll(note: RollNote) -> Roll | None:
    """Stop the roll that is under way, and clear away one that failed; the roll, None where there is none to stop.

    A crawler that has its order to reload is replaced all the same.
    """
    while (roll := note.read()) and roll.state in (RollState.ROLLING, RollState.FAILED):
        if note.write(stopped := replace(roll, state=RollState.ABORTED, reason="aborted by an operator")):
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
