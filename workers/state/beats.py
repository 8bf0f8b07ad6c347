"""The leader of several beats, which alone sends: a lock with a TTL and a fencing token; the others wait for its place.

A leader that was paused, cut off or robbed of its lock finds out before it sends: its note of a round (`Schedules.note`) is
refused, because the token is another beat's by then. A round that it had noted before, and sends late, is not begun by any
worker (`beat_begin.lua`).
"""

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass

import redis

from redis_components.server.untrusted_values import answers_of, as_text, server_time
from workers.state.keys import FleetKeys

from .keys import script
from .schedules import Schedules

LEAD_TTL_S = 6.0  # a leader that died is noticed after this; it renews every second
MAX_SILENCE_S = 60.0  # a leader that has sent nothing for this time is stalled


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The answer to a beat that tries to lead."""

    leads: bool
    token: int  # the leader's fencing token
    leader: str
    left_s: float  # until the leader's lock runs out
    now: float  # epoch s, Redis's clock


@dataclass(frozen=True, kw_only=True)
class BeatView:
    """The beats as others see them."""

    leader: str | None  # `host:pid`; None: none leads
    waiting: tuple[str, ...]  # those that would take its place
    silent_s: float | None  # since the last task was sent; None: none was ever sent

    @property
    def stalled(self) -> bool:
        """Nothing is sent, for any reason. The fleet's own tasks are due at least every `MAX_SILENCE_S`."""
        return self.leader is None or self.silent_s is None or self.silent_s > MAX_SILENCE_S

    def sentence(self) -> str:
        """Return one sentence for display: the leader, or that there is none and what stands still."""
        since = "nothing was ever sent" if self.silent_s is None else f"nothing was sent for {self.silent_s:.0f} s"
        if self.leader is None:
            return f"none leads, {since}: nothing is seeded, launched or stored. Start one with `celery -A tasks beat`."
        if self.stalled:
            return f"{self.leader} leads, but {since}: nothing is seeded, launched or stored. See its log for the cause."
        others = f", {len(self.waiting)} more wait" if len(self.waiting) > 1 else ", one more waits" if self.waiting else ""
        return f"{self.leader} leads{others}"


class Beats:
    """The beats of one fleet. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, client: redis.Redis, keys: FleetKeys | None = None, *, ttl_s: float = LEAD_TTL_S) -> None:
        self._client = client
        self._keys = keys or FleetKeys()
        self._ttl_ms = round(ttl_s * 1000)

    def lead(self, owner: str) -> Standing:
        """Ask to lead, or to go on leading. `owner` is unique for each process: `host:pid#random`, of which people see the
        first part.
        """
        keys = {"leader": self._keys.beat_leader(), "fences": self._keys.fences(), "beats": self._keys.beats()}
        outcome, token, leader, left_ms, now_ms = script("beat_lead")(
            self._client, keys, {"owner": owner, "ttl_ms": self._ttl_ms}
        )
        return Standing(
            leads=outcome == b"leads", token=int(token), leader=_shown(leader), left_s=left_ms / 1000, now=now_ms / 1000
        )

    def resign(self, owner: str) -> bool:
        """Leave; True when it led: the next one takes its place at once."""
        keys = {"leader": self._keys.beat_leader(), "beats": self._keys.beats()}
        return bool(script("beat_resign")(self._client, keys, {"owner": owner}) == b"resigned")

    def look(self, now: float) -> BeatView:
        """Return the leader and the waiting beats; `now` is Redis's time (`Registry.now`)."""
        with self._client.pipeline(transaction=False) as pipe:
            pipe.get(self._keys.beat_leader())
            pipe.zrangebyscore(self._keys.beats(), (now * 1000) - self._ttl_ms, "+inf", start=0, num=100)
            held, alive = answers_of(pipe)
        leader = (_shown(as_text(held).partition("|")[2]) or None) if held else None
        sent = [one.sent_at for one in Schedules(self._client, self._keys).rounds().values() if one.sent_at]
        return BeatView(
            leader=leader,
            waiting=tuple(sorted(name for name in (_shown(owner) for owner in alive or ()) if name != leader)),
            silent_s=max(0.0, now - max(sent)) if sent else None,
        )


def _shown(owner: bytes | str) -> str:
    return as_text(owner).rpartition("#")[0]


def check(client: redis.Redis, host: str) -> tuple[bool, str]:
    """Return True if a beat on `host` is healthy, and a sentence about it: its heartbeat is recent, and it sends if it leads."""
    view = Beats(client).look(server_time(client))
    if view.leader is not None and view.leader.rpartition(":")[0] == host:
        return not view.stalled, view.sentence()
    waits = [name for name in view.waiting if name.rpartition(":")[0] == host]
    return bool(waits), f"{waits[0]} waits; {view.sentence()}" if waits else f"no beat on {host} was heard lately"


def main() -> int:
    """Run the health check of a container, `python -m workers.state.beats`: 0 or 1, and one line."""
    from redis_components.connection import connect, explain
    from redis_components.embedded import redis_url
    from redis_components.errors import TrawlError
    from redis_components.server.variables import load_env_file

    url = None
    try:
        load_env_file()
        url = redis_url()
        healthy, sentence = check(connect(url), socket.gethostname())
    except TrawlError as error:
        healthy, sentence = False, str(error)
    except redis.RedisError as error:
        healthy, sentence = False, str(explain(error, url or ""))
    print(sentence, file=sys.stdout if healthy else sys.stderr)
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main())
