"""A scheduler for Celery's beat with leader election: any number of beats may run, one sends, the others stand by.

    celery -A tasks beat        (`beat_scheduler` in celeryconfig.py names this class)

The leader is elected in Redis, which also has the rounds (`workers.state.beats`): before a round is sent, the leader notes it
with its fencing token, afterwards that it was sent. A round that was noted and not confirmed is sent again, under the same name,
and a worker begins a round once (`tasks.base`). Time is Redis's. No call waits for long: a beat that cannot reach Redis tries
again each second, and logs that once.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import redis
from celery.beat import Scheduler
from celery.utils.log import get_logger
from kombu.exceptions import OperationalError

from redis_components.admin import health
from redis_components.admin.health import Problem
from redis_components.connection import connect, explain
from redis_components.embedded import redis_url
from redis_components.server.printable import in_words
from redis_components.server.untrusted_values import is_foreign
from redis_components.server.url import impatient
from tasks.base import IMPATIENT, ROUND_HEADER
from workers.node.health import Condition, StatusFile
from workers.node.heartbeat import complaint, off_by
from workers.state.beats import Beats, Round, RoundState, Schedules, Standing
from workers.state.quarantine import find
from workers.state.registry import Registry
from workers.state.reports import EVERY_S, Troubles

from .schedule import Schedule, ScheduledTask, checker, defaults_of, effective, expires_s, needs_anchor, next_due

ANSWER_S = 2.0  # longest wait for Redis; well below the time that the lock lives without renewal
RENEW_S = 1.0  # how often the leader renews, and how often the others look
HEALTH_S = 15.0  # how often the leader looks at how Redis is set up
KEYS_NAMED = 5  # in one line of the log
STATUS_S = 5.0  # how often the status file is written
READ_S = 2.0  # between the leader's readings of changes to the schedule

logger = get_logger("celery.beat")


class LeaderScheduler(Scheduler):
    """Sends what is due while it leads. Never ends because of Redis or the broker."""

    def setup_schedule(self) -> None:
        """Set the schedule up. Celery does not call it for the instance that only shows the banner."""
        self._url = redis_url()
        self._client = client = connect(impatient(self._url, ANSWER_S))
        self._owner = f"{socket.gethostname()}:{os.getpid()}#{secrets.token_hex(4)}"
        self._beats, self._schedules, self._registry = Beats(client), Schedules(client), Registry(client)
        self._defaults = defaults_of(self.app.conf.beat_schedule)
        self._check = checker(self.app.tasks)
        self._schedule = Schedule(entries={}, refused={})
        self._rounds: dict[str, Round] = {}
        self._token: int | None = None  # while it leads
        self._leader = ""  # by the last answer
        self._troubles, self._compared_at = Troubles(client), 0.0  # monotonic
        self._read_at = self._health_at = 0.0  # monotonic
        self._findings: dict[str, str] = {}  # messages logged about the server, by name
        self._broker: Any = None
        self._trouble: dict[str, str] = {}  # unavailable server ("Redis", "the broker") -> its logged message
        self._status, self._status_at = StatusFile("beat"), 0.0
        self._status.begin()

    def tick(self, *_: Any, **__: Any) -> float:
        """Do one round: renew, or ask to lead; send what is due. Return the seconds until the next one."""
        wait_s = self._look()
        self._write_status()
        return wait_s

    def _look(self) -> float:
        try:
            asked_at = time.time()
            standing = self._beats.lead(self._owner)
            self._compare(off_by(standing.now, asked_at, time.time()))
            self._on_standing(standing)
            wait_s = self._lead(standing) if standing.leads else min(RENEW_S, standing.left_s + 0.02)
            self._back("Redis")  # not before: a Redis without room answers this, and refuses the rest
            self._back("a key")
            return wait_s
        except (redis.RedisError, OSError) as error:
            if is_foreign(error):
                self._spoilt(str(error))
            else:
                how = "refuses" if isinstance(error, redis.ResponseError) else "is away"
                self._away("Redis", str(explain(error, self._url)), how)
            return RENEW_S

    def close(self) -> None:
        """Leave, so that another beat leads at once. Called once more after a signal."""
        if hasattr(self, "_beats"):
            with suppress(redis.RedisError, OSError):
                if self._beats.resign(self._owner):
                    logger.info("beat: gave up the lead")
            self._token = None
            self._drop_broker()
            self._status.end()
        super().close()

    def _write_status(self) -> None:
        """Write the status file, which the health check reads."""
        if time.monotonic() >= self._status_at:
            self._status_at = time.monotonic() + STATUS_S
            role = "it leads" if self._token is not None else f"it waits; {self._leader or 'none'} leads"
            away = "; ".join(f"{what}: {message}" for what, message in self._trouble.items())
            self._status.write(Condition.WAITS if away else Condition.OK, away or role)

    def _compare(self, off_s: float) -> None:
        """Compare the clocks: a beat that is behind sends messages that no worker takes; one that is ahead does no harm."""
        if time.monotonic() >= self._compared_at:
            self._compared_at = time.monotonic() + EVERY_S
            found = [Problem(what=complaint(off_s))] if off_s < 0 else []
            with suppress(redis.ResponseError):  # a user of an older `trawl config acl` may not write there
                self._troubles.report(f"beat {self._owner.partition('#')[0]}", found)

    def _on_standing(self, standing: Standing) -> None:
        if standing.leads and standing.token != self._token:
            logger.info("beat: this one leads now (%s)", standing.leader)
            self._take_over()
        elif not standing.leads and self._token is not None:
            logger.warning("beat: %s leads now, no longer this one", standing.leader)
        elif not standing.leads and standing.leader != self._leader:
            logger.info("beat: %s leads; this one waits", standing.leader)
        self._token = standing.token if standing.leads else None
        self._leader = standing.leader

    def _take_over(self) -> None:
        """Go on where the last leader was. What this process itself has sent counts also where Redis has lost it."""
        for name, last in self._schedules.rounds().items():
            ours = self._rounds.get(name)
            if ours is None or (last.due, last.state is RoundState.SENT) > (ours.due, ours.state is RoundState.SENT):
                self._rounds[name] = last
        self._read_at = 0.0

    def _lead(self, standing: Standing) -> float:
        """Send what is due; returns seconds until the next look."""
        if time.monotonic() >= self._read_at:
            self._read(standing)
        if time.monotonic() >= self._health_at:
            self._examine()
        ahead = standing.now - time.monotonic()  # of Redis's clock before our own
        waits = [RENEW_S]
        for entry in self._schedule.entries.values():
            if not entry.enabled:
                continue
            now = time.monotonic() + ahead
            due = next_due(entry, self._rounds.get(entry.name), now)
            if due <= now:
                if not self._send(entry, due, standing.token):
                    return RENEW_S
                due = next_due(entry, self._rounds.get(entry.name), now)
            waits.append(due - now)
        return max(0.0, min(waits))

    def _read(self, standing: Standing) -> None:
        """Read the changes of the schedule, and log the invalid entries."""
        schedule = effective(self._defaults, self._schedules.stored(), self._check)
        for name, reason in schedule.refused.items():
            if self._schedule.refused.get(name) != reason:
                logger.error("beat: %s is left out: %s", name, reason)
                self._registry.report_error("beat", f"{name} is left out: {reason}")
        for entry in schedule.entries.values():
            if needs_anchor(entry, self._rounds.get(entry.name), standing.now):
                self._note(entry.name, standing.token, Round(due=standing.now, sent_at=None, state=RoundState.SEEN))
        gone = [name for name in self._rounds if name not in schedule.entries and name not in schedule.refused]
        self._schedules.forget_rounds(gone)
        for name in gone:
            del self._rounds[name]
        self._schedule, self._read_at = schedule, time.monotonic() + READ_S

    def _examine(self) -> None:
        """Log once each problem of how Redis stores its data, and again when it has come back."""
        findings = {one.name: one for one in health.look(self._client)}
        found = {name: str(one) for name, one in findings.items()}
        known, self._findings, self._health_at = self._findings, found, time.monotonic() + HEALTH_S
        for name, message in found.items():
            if name not in known:
                logger.log(logging.ERROR if findings[name].grave else logging.WARNING, "beat: %s", message)
                if findings[name].grave:
                    self._registry.report_error("Redis", message)
        for name in known.keys() - found.keys():
            logger.warning("beat: resolved: %s", known[name])

    def _note(self, name: str, token: int, last: Round) -> bool:
        noted = self._schedules.note(token, name, last.due, last.state)
        if noted:
            self._rounds[name] = last
        return noted

    def _send(self, entry: ScheduledTask, due: float, token: int) -> bool:
        """Send one round; False when this beat must not, or cannot reach the broker."""
        with _uninterrupted():
            return self._send_once(entry, round(due, 3), token)

    def _send_once(self, entry: ScheduledTask, due: float, token: int) -> bool:
        if not self._note(entry.name, token, Round(due=due, sent_at=None, state=RoundState.DUE)):
            return False
        try:
            self._publish(entry, due, token)
        except self._broker_errors() as error:
            self._drop_broker()
            self._away("the broker", in_words(error))
            return False
        except Exception as error:  # an error in one entry must not stop the others; it is tried again at its next round
            logger.exception("beat: %s could not be sent", entry.name)
            self._registry.report_error("beat", f"{entry.name} could not be sent: {in_words(error)}")
        else:
            self._back("the broker")
            logger.debug("beat: sent %s (%s)", entry.name, entry.task)
        self._rounds[entry.name] = Round(due=due, sent_at=None, state=RoundState.SENT)  # also if Redis cannot store it
        return self._schedules.note(token, entry.name, due, RoundState.SENT)

    def _publish(self, entry: ScheduledTask, due: float, token: int) -> None:
        if self._broker is None:
            self._broker = self.app.connection_for_write(transport_options=IMPATIENT)
        options = {
            "ignore_result": True,
            **entry.options,
            "expires": expires_s(entry, due),
            "headers": {"celery_beat_task": True, ROUND_HEADER: [entry.name, token, due]},
        }
        task = self.app.tasks[entry.task]
        task.apply_async(entry.args, dict(entry.kwargs), connection=self._broker, retry=False, **options)

    def _broker_errors(self) -> tuple[type[BaseException], ...]:
        ours = (OperationalError, OSError, redis.RedisError)
        return (*ours, *self._broker.connection_errors) if self._broker is not None else ours

    def _drop_broker(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            with suppress(Exception):  # it is broken, or not needed any more
                broker.release()

    def _spoilt(self, message: str) -> None:
        """Record that Redis is there, and a key that beat needs holds a foreign value."""
        if "a key" in self._trouble:
            return
        try:
            names = "; ".join(map(str, find(self._client, ())[:KEYS_NAMED])) or message
        except redis.RedisError as error:
            names = f"{message} ({error})"
        self._trouble["a key"] = names
        logger.error(
            "beat: sends nothing, because of foreign values in Redis: %s; `trawl doctor` has the commands that remove them", names
        )

    def _away(self, what: str, message: str, how: str = "is away") -> None:
        if what not in self._trouble:
            logger.warning("beat: %s; trying again each second: %s", f"{what} {how}", message)
        self._trouble[what] = message

    def _back(self, what: str) -> None:
        if self._trouble.pop(what, None) is not None:
            logger.warning("beat: %s is back", what)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay SIGTERM: between sending a round and recording it, the round would be sent again."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
