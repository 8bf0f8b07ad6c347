"""Output to a URL by POST, signed by the specification of https://www.standardwebhooks.com, whose libraries verify the signature.

    webhook-id: <output>:<position of the first event>
    webhook-timestamp: <epoch seconds>
    webhook-signature: v1,<base64 of HMAC-SHA256 of "id.timestamp.body">
    {"output": "shop", "events": [{"id": "demo/post/12@1", ...}]}

An answer 2xx accepts the batch. Other answers are handled in `_judge`. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import aiohttp
import msgspec
from scrapy.exceptions import CannotResolveHostError

from forums.events.rules import WebhookOptions
from forums.storage.read.event_reader import Event
from redis_components.errors import ConfigError
from workers.http.connector import GuardedConnector, allowing
from workers.http.public_addresses import Allowance, private_addresses_allowed

from .delivery import NotTaken, Taken

_REFUSALS = frozenset(
    {400, 406, 409, 410, 411, 413, 414, 415, 422, 431, 451}
)  # refusals of the batch; other 4xx are errors of the configuration
_LONGEST_WAIT_S = 3600.0
_PATIENCE_S = 10.0  # of the search for the refused event
_SHOWN = 200  # characters of an answer


class WebhookOutput:
    """One receiver."""

    def __init__(self, name: str, options: WebhookOptions) -> None:
        self._name = name
        self._options = options

    def deliver(self, events: Sequence[Event], *, single: bool = False) -> Taken:
        """Post a batch; if it is refused, half of it, until the refused event stands alone. With a slow receiver the first
        event is posted alone at once: the round has to end before its task's time limit, or its result would be lost.
        """
        begun = time.monotonic()
        size = 1 if single else min(len(events), self._options.batch)
        while True:
            reason = asyncio.run(self._post(events[:size]))
            if reason is None:
                return Taken(number=size)
            if size == 1:
                return Taken(number=1, refused=[(events[0], reason)])
            size = (size + 1) // 2 if time.monotonic() - begun < _PATIENCE_S else 1

    async def _post(self, events: Sequence[Event]) -> str | None:
        """Return None if the events are accepted, else why they are refused for good. Raises NotTaken."""
        body = msgspec.json.encode({"output": self._name, "events": events})
        headers = signed(body, f"{self._name}:{events[0].position}", int(time.time()), self._options.secret)
        timeout = aiohttp.ClientTimeout(total=self._options.timeout_s)
        try:
            async with aiohttp.ClientSession(connector=GuardedConnector(), timeout=timeout, trust_env=False) as session:
                with allowing(self._allowance()):
                    async with session.post(self._options.url, data=body, headers=headers, allow_redirects=False) as answer:
                        text = (await answer.content.read(_SHOWN)).decode("utf-8", "replace")
                        return _judge(answer.status, answer.headers.get("Retry-After"), " ".join(text.split()))
        except TimeoutError:
            raise NotTaken(f"no answer within {self._options.timeout_s:g} s") from None
        except CannotResolveHostError as error:
            raise NotTaken(str(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise NotTaken(f"{type(error).__name__}: {error}") from None

    def _allowance(self) -> Allowance:
        """Return the allowance of private addresses: if the file allows them, or names one as the URL."""
        host = urlsplit(self._options.url).hostname or ""
        everything = self._options.allow_private or private_addresses_allowed()
        return Allowance(everything=everything, hosts=frozenset({host.lower()}))


def signed(body: bytes, id_: str, at: int, secret: str) -> dict[str, str]:
    """Return the headers of a request. `secret` is `whsec_` and base64, or any text. Raises ConfigError."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True) if secret.startswith("whsec_") else secret.encode()
    except binascii.Error:
        raise ConfigError("a webhook's secret that begins with whsec_ must go on in base64") from None
    digest = hmac.new(key, f"{id_}.{at}.".encode() + body, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "Trawl",
        "webhook-id": id_,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _judge(status: int, retry_after: str | None, text: str) -> str | None:
    answer = f"HTTP {status}{f': {text}' if text else ''}"
    if 200 <= status < 300:
        return None
    if status in _REFUSALS:
        return answer
    wait_s = min(float(retry_after), _LONGEST_WAIT_S) if retry_after and retry_after.isascii() and retry_after.isdigit() else None
    raise NotTaken(answer, retry_after_s=wait_s, poison=status in (500, 501))
