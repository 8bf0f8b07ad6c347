"""Publication of events to the outputs of the rules file: the body of the task `publish_events`.

Each output has a cursor in the database. A round reads the events after it, delivers those that match the output's rules, and
moves the cursor when they were accepted. If a process dies in between, the same events are delivered again, with the same ids:
the stream and the file ignore them, a webhook's receiver has to.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import redis

from forums.state.keys import ForumFleetKeys
from forums.state.site_faults import note_faults
from forums.storage import Database
from forums.storage.read.event_reader import Event, EventLog
from forums.storage.write.changes import Position
from redis_components.errors import ConfigError
from redis_components.items.stream import give_back

from .cursors import MOST_DEAD, Cursor, Cursors
from .expression import JudgingTime
from .messages import NotifyOptions
from .outputs import Delivery, NotTaken, OutputOptions
from .rules import Rules

_LOCK_S = 60.0  # longer than a round, with the slowest webhook
_AT_ONCE = 500  # events read in one step
_THREADS = 8  # outputs that are served concurrently
_LONGEST_WAIT_S = 300.0
_LONGEST_HOLD_S = 60.0
_SUSPECT_AFTER = 5  # failures with a batch, of a receiver that answers: from then on one event at a time
_GIVE_UP_AFTER = 20  # failures with a single event, of a receiver that answers: about an hour and a half
_LEAST_JUDGING_S = 0.25  # CPU time of an output's rules in a round, however many outputs there are

_begun: set[tuple[str, datetime]] = set()  # outputs made at run time whose cursor this process has looked at

logger = logging.getLogger(__name__)


class OutputResult(StrEnum):
    """Outcome of a round for one output."""

    UP_TO_DATE = "up to date"
    MORE = "more"  # its time was spent; it goes on in the next round
    WAITING = "waiting"  # it is tried later: it failed a while ago, or its quiet hours or its digest's time are not over
    FAILED = "failed"  # it did not accept anything now
    MOVED = "moved"  # another process moved its cursor meanwhile


def publish(
    database: Database,
    client: redis.Redis,
    rules: Rules,
    *,
    budget_s: float = 5.0,
    faults: Mapping[str, str] | None = None,
) -> dict[str, OutputResult]:
    """Publish new events to each output, except outputs that another process serves now. So a slow receiver delays no other one:
    the next round serves the others. `faults` are reported with the troubles of outputs. Raises StorageError and
    `redis.RedisError`.
    """
    with ExitStack() as stack:
        locks = {name: stack.enter_context(ExitStack()) for name in rules.outputs}
        free = {name: lock for name, lock in locks.items() if lock.enter_context(_only_one(client, name))}
        if not free:
            return {}
        cursors, log = Cursors(database), EventLog(database)
        turn = _Round(
            cursors=cursors,
            log=log,
            rules=rules,
            client=client,
            budget_s=budget_s,
            deadline=time.monotonic() + budget_s,
            begin=log.begin(),
            end=log.end(),
        )
        results = turn.run(free)
        troubles = _undecided(turn.undecided) | _troubles(cursors.all(), results) | dict(faults or {})
        # The trouble of an output stays until the output looks at other events.
        kept = rules.outputs.keys() - turn.undecided.keys()
        note_faults(client, ForumFleetKeys().output_troubles(), troubles, kept)
        return results


@contextmanager
def _only_one(client: redis.Redis, output: str) -> Iterator[bool]:
    """Yield True if this process holds the output's lock in the block."""
    lock = client.lock(ForumFleetKeys().publishing(output), timeout=_LOCK_S, blocking=False)
    if not lock.acquire():
        yield False
        return
    token = lock.local.token  # of this thread; another thread may release it
    try:
        yield True
    finally:
        give_back(lambda: lock.do_release(token), f"the publisher's lock of output {output}", held_s=_LOCK_S)


@dataclass(frozen=True, kw_only=True)
class _Round:
    """One round over all outputs that this process has locked."""

    cursors: Cursors
    log: EventLog
    rules: Rules
    client: redis.Redis
    budget_s: float
    deadline: float
    begin: Position
    end: Position
    undecided: dict[str, Counter[tuple[str, str]]] = field(default_factory=dict)  # output -> (rule, site) -> events

    def run(self, free: Mapping[str, ExitStack]) -> dict[str, OutputResult]:
        """Serve the outputs whose locks are in `free`; each lock is released once its output is done."""
        known = self.cursors.all()
        results: dict[str, OutputResult] = {}
        due: dict[str, Cursor] = {}
        for name in free:
            cursor = self._cursor(name, known.get(name))
            if cursor.retry_at is not None and cursor.retry_at > datetime.now(UTC):
                results[name] = OutputResult.WAITING
                free[name].close()
            else:
                due[name] = cursor
        if due:
            judging_s = max(self.budget_s / len(due), _LEAST_JUDGING_S)
            with ThreadPoolExecutor(min(_THREADS, len(due))) as pool:
                running = {name: pool.submit(self._publish_locked, free[name], cursor, judging_s) for name, cursor in due.items()}
                results |= {name: one.result() for name, one in running.items()}
        return results

    def _cursor(self, name: str, known: Cursor | None) -> Cursor:
        """Return the cursor of an output, which begins as its options name it, or when it was made. A cursor from before that is
        one of a former output of its name.
        """
        since = self.rules.since.get(name)
        if since is None or (known is not None and (name, since) in _begun):
            start = self.end if self.rules.outputs[name].begin == "now" else self.begin
            return known or self.cursors.create(name, start)
        start = self.log.since(since)
        if known is None or known.after < start:
            self.cursors.drop(name)
            known = self.cursors.create(name, start)
        _begun.add((name, since))
        return known

    def _publish_locked(self, lock: ExitStack, cursor: Cursor, judging_s: float) -> OutputResult:
        with lock:
            judging = JudgingTime(judging_s)  # by the clock of this thread
            return self._publish_to(cursor, judging)

    def _publish_to(self, cursor: Cursor, judging: JudgingTime) -> OutputResult:
        options, to = self.rules.outputs[cursor.name], Delivery(cursor.name, self.client, self.end)
        while True:
            lost = max(0, self.begin.seq - cursor.after.seq - 1)
            if lost:
                logger.warning("output %s was away for too long: the events of %d transactions are gone", cursor.name, lost)
            events = self.log.read(cursor.after, _AT_ONCE, fleet=True)
            if not events:
                return OutputResult.UP_TO_DATE
            looked_at, wanted = self.rules.judged(options, events, judging)
            self.undecided[cursor.name] = judging.undecided
            step = _hand_over(self.cursors, options, cursor, to, wanted, events[looked_at - 1].at, lost)
            if isinstance(step, OutputResult):
                return step
            cursor = step
            if judging.over or time.monotonic() >= self.deadline:
                return OutputResult.MORE


def _hand_over(
    cursors: Cursors, options: OutputOptions, cursor: Cursor, to: Delivery, wanted: list[Event], end: Position, lost: int
) -> Cursor | OutputResult:
    """Deliver one step, which covers everything up to `end`; return the next cursor, or the outcome if there is none."""
    if not wanted:
        return cursors.advance(cursor, end, lost=lost) or OutputResult.MOVED
    if (until := _held_until(options, wanted[0])) is not None:
        cursors.hold(cursor, until)
        return OutputResult.WAITING
    try:
        taken = options.deliver(to, wanted[:1] if cursor.failures >= _SUSPECT_AFTER else wanted)
    except (NotTaken, ConfigError) as error:
        poison, asked_s = (error.poison, error.retry_after_s) if isinstance(error, NotTaken) else (False, None)
        if poison and cursor.failures >= _GIVE_UP_AFTER:
            refused = [(wanted[0], str(error))]
            return cursors.advance(cursor, wanted[0].at, refused, lost) or OutputResult.MOVED
        wait_s = asked_s or min(2.0 ** min(cursor.failures, 10), _LONGEST_WAIT_S)  # bounded: a float overflows after days
        if cursor.failures == 0:
            logger.warning("output %s takes nothing now, it is tried again: %s", cursor.name, error)
        cursors.failed(cursor, str(error), wait_s)
        return OutputResult.FAILED
    if taken.refused:
        if cursors.counts().get(cursor.name, 0) + len(taken.refused) > MOST_DEAD:
            cursors.failed(cursor, f"over {MOST_DEAD:,} events were refused: {taken.refused[0][1]}", _LONGEST_WAIT_S)
            return OutputResult.FAILED
        logger.warning("output %s refused %s: %s", cursor.name, taken.refused[0][0].id, taken.refused[0][1])
    done = wanted[taken.number - 1].at if taken.number < len(wanted) else end
    return cursors.advance(cursor, done, taken.refused, lost) or OutputResult.MOVED


def _held_until(options: OutputOptions, oldest: Event) -> datetime | None:
    """Return until when an output must not have these events. At most a minute, since the rules may change."""
    if not isinstance(options, NotifyOptions):
        return None
    now = datetime.now(UTC)
    quiet_s = options.quiet_for_s(now.timestamp()) or 0.0
    waits_s = (oldest.stored_at + timedelta(minutes=options.digest_minutes) - now).total_seconds()
    held_s = max(quiet_s, waits_s)
    return now + timedelta(seconds=min(held_s, _LONGEST_HOLD_S)) if held_s > 0 else None


def _undecided(found: Mapping[str, Counter[tuple[str, str]]]) -> dict[str, str]:
    """Return an error by output for the rule that could not judge most texts of a site in time."""
    troubles = {}
    for output, counts in found.items():
        for (rule, site), events in counts.most_common(1):
            troubles[output] = (
                f"got {events:,} events of site {site} that rule {rule} could not judge in time, as `undecided`: "
                "simplify its regular expression"
            )
            logger.warning("output %s: %s", output, troubles[output])
    return troubles


def _troubles(known: Mapping[str, Cursor], results: Mapping[str, OutputResult]) -> dict[str, str]:
    """Return the errors of outputs that failed more than once."""
    failing = {name: one for name, one in known.items() if name in results and one.failures > 1}
    reasons = {name: " ".join((one.error or "no reason is known").split()) for name, one in failing.items()}
    return {name: f"takes no events, they wait: {why}" for name, why in reasons.items()}
