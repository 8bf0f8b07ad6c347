"""Detection of the fingerprints' algorithm in a dupefilter: requests that wait in the queue were put into it before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import redis
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from redis_components.fingerprint import OldScrapyFingerprinter, ScrapyRedisFingerprinter

from .members import BothKeys, kind_of, oldest
from .pickles import PickleReader
from .queue import QueueFound

SAMPLE = 100
_CANDIDATES = {
    f"{cls.__module__}.{cls.__qualname__}": cls()
    for cls in (ScrapyRedisFingerprinter, OldScrapyFingerprinter, RequestFingerprinter)
}


@dataclass(frozen=True, kw_only=True)
class Recognised:
    """The REQUEST_FINGERPRINTER_CLASS that finds the queued requests in the dupefilter."""

    setting: str  # "" where none of those that are known does
    matching: int  # of `tried` requests
    tried: int


def recognise(client: redis.Redis, keys: BothKeys, found: QueueFound) -> Recognised | None:
    """Try the algorithms of several versions on some requests that passed the dupefilter. Reads pickles.

    None where there is nothing to try on: no such request waits, or no set of fingerprints is there any more.
    """
    sets = {keys.theirs.dupefilter, keys.theirs.foreign_fingerprints(), keys.ours.dupefilter}
    sets = {key for key in sets if kind_of(client, key) == "set"}
    requests = _requests(client, keys, found)
    if not sets or not requests:
        return None
    known = {path: _known(client, sets, [one.fingerprint(request) for request in requests]) for path, one in _CANDIDATES.items()}
    best = max(known, key=lambda path: known[path])
    return Recognised(setting=best if known[best] else "", matching=known[best], tried=len(requests))


def _requests(client: redis.Redis, keys: BothKeys, found: QueueFound) -> list[Request]:
    key = keys.theirs.foreign_requests() if found.aside else keys.theirs.requests
    read = [_request(fields) for fields in PickleReader().read(oldest(client, key, found.kind, SAMPLE))]
    return [request for request in read if request is not None and not request.dont_filter]


def _request(fields: Any) -> Request | None:
    try:
        return Request(fields["url"], method=fields["method"], body=fields["body"], dont_filter=fields["dont_filter"])
    except Exception:  # not a request: the import reports the reason
        return None


def _known(client: redis.Redis, sets: set[str], fingerprints: list[bytes]) -> int:
    """Return the number of fingerprints in one of the sets, in the form of scrapy-redis or, already imported, in ours."""
    members = [form for fingerprint in fingerprints for form in (fingerprint.hex(), fingerprint)]
    answers = [client.smismember(key, members) for key in sets]
    seen = [any(answer) for answer in zip(*answers, strict=True)]
    return sum(a or b for a, b in zip(seen[::2], seen[1::2], strict=True))
