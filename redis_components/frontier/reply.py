"""The answer of one exchange: the named fields of the reply of `lua/frontier/exchange.lua`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from .messages import Lease, SendSlot


class HeldNow(NamedTuple):
    """The present holds: fields and values of the hash of holds, and the lots with entries. `holds.Holds` reads it."""

    fields: dict[bytes, bytes]
    lots: list[str]

    @property
    def version(self) -> str:
        """Another one after each change; "" before the first one."""
        return _text(self.fields.get(b"version", b""))


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one exchange; counts are taken after everything was applied."""

    outcome: str
    """"applied", "repeated", "fenced", "layout" or "filter"."""
    layout: str = ""
    """Version of the keys in Redis; "filter": the form of the dupefilter there."""
    last_applied: int = 0
    """Fenced: number of the last exchange of this owner that Redis knows."""
    leases: list[Lease] = []
    tasks: list[Lease] = []
    duplicates: list[int] = []
    """Places (from 0) of the requests that were known already."""
    ready: int = 0
    withheld: int = 0
    """Of these, requests that are not for us now because we are `trying` another one."""
    leased: int = 0
    """Requests leased, by all owners."""
    leased_tasks: int = 0
    """Start tasks leased, by all owners."""
    waiting: int = 0
    """Start tasks that wait."""
    expired: str = ""
    """An owner that counts as dead and may be reclaimed."""
    lost: int = 0
    """Acks, releases, parkings and burials of leases that were not ours any more."""
    full: bool = False
    """Redis is out of memory: nothing was leased."""
    survives: bool | None = None
    """A crash, by an append-only file or by replicas that take over; None: not asked, or not known."""
    forgotten: bytes = b""
    """Time of the last removal of single requests from the dupefilter, in ms; b"" if long ago."""
    unsorted: bool = False
    """Start tasks wait that have not been sorted by their turns."""
    parked: int = 0
    """Requests set aside for a site that is held."""
    parked_tasks: int = 0
    """Start tasks, in the same form."""
    left: int = 0
    """Entries in the lot from which to put back."""
    items: int = 0
    """Items that wait or were refused, where the message bounds their number."""
    backed_up: bool = False
    """They are so many, or so large, that nothing was leased."""
    held: HeldNow | None = None
    """None: what we know is right."""
    lanes: int = 0
    """Lanes that hold requests; one more where requests wait for their time."""
    paced: dict[str, SendSlot] = {}
    """By lease id."""
    now: int = 0
    """The time of Redis in ms, from which those count."""
    closing: dict[str, float] = {}
    """Lane -> seconds from now at which its quiet hours begin, of lanes of which something was leased."""
    limits: dict[bytes, bytes] | None = None
    """Limits by lane, and their version; None: what we know is right."""


def decode(raw: list[Any]) -> Reply:
    """Return the reply of `exchange.lua`: names and values; 0, empty and false ones are left out."""
    parts: dict[bytes, Any] = dict(zip(raw[::2], raw[1::2], strict=True))
    fields: dict[str, Any] = {}
    for name, value in parts.items():
        read = _READ.get(name)
        if read is not None:
            fields[name.decode()] = read(value)
    if b"held" in parts:
        fields["held"] = _held(parts[b"held"], parts.get(b"lots", []))
    if paced := fields.get("paced"):
        fields["leases"] = [
            lease._replace(lane=paced[lease.id].lane) if lease.id in paced else lease for lease in fields["leases"]
        ]
    return Reply(**fields)


def _text(value: bytes) -> str:
    """Return the text of bytes that other processes may have written, as far as they can be read."""
    return value.decode("utf-8", "replace")


def _leases(flat: list[Any]) -> list[Lease]:
    return [Lease(float(flat[i + 1]), flat[i + 2], flat[i].decode(), flat[i + 3]) for i in range(0, len(flat), 4)]


def _tasks(flat: list[Any]) -> list[Lease]:
    return [Lease(0.0, b"", flat[i].decode(), flat[i + 1]) for i in range(0, len(flat), 2)]


def _paced(flat: list[Any]) -> dict[str, SendSlot]:
    rows = (flat[n : n + 4] for n in range(0, len(flat), 4))
    return {
        lease.decode(): SendSlot(_text(lane), at / 1000 if at >= 0 else None, late / 1000 if late >= 0 else math.inf)
        for lease, lane, at, late in rows
    }


def _closing(flat: list[Any]) -> dict[str, float]:
    return {_text(flat[n]): flat[n + 1] / 1000 for n in range(0, len(flat), 2)}


def _held(fields: list[bytes], lots: list[bytes]) -> HeldNow:
    return HeldNow(dict(zip(fields[::2], fields[1::2], strict=True)), [_text(lot) for lot in lots[::2]])


_READ: dict[bytes, Callable[[Any], Any]] = {
    b"outcome": bytes.decode,
    b"layout": _text,
    b"expired": _text,
    b"forgotten": bytes,
    b"leases": _leases,
    b"tasks": _tasks,
    b"duplicates": lambda places: [place - 1 for place in places],
    b"full": bool,
    b"backed_up": bool,
    b"unsorted": bool,
    b"paced": _paced,
    b"closing": _closing,
    b"limits": lambda flat: dict(zip(flat[::2], flat[1::2], strict=True)),
    b"survives": lambda text: text == b"yes",
    **dict.fromkeys(
        (b"last_applied", b"ready", b"withheld", b"leased", b"leased_tasks", b"waiting", b"lost", b"parked", b"parked_tasks"), int
    ),
    **dict.fromkeys((b"left", b"items", b"lanes", b"now"), int),
}
