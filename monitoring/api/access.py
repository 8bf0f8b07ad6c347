"""Access to the API: one token to read, one to act, which may read too; a limit of guesses; the audit of each act."""

from __future__ import annotations

import base64
import binascii
import hmac
import logging
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from ipaddress import IPv6Address, ip_address
from typing import TypeVar

import redis
from fastapi import Request

from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line, without_secrets
from workers.environment.variables import Api
from workers.state.keys import FleetKeys
from workers.state.reports import Act

SHORTEST = 16
"""Characters of a token."""


class Scope(IntEnum):
    """Permission of a token."""

    NOTHING = 0
    READ = 1
    ACT = 2


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokens; "" where there is none."""

    read: str = ""
    act: str = ""

    @classmethod
    def from_environment(cls) -> Tokens:
        """Read TRAWL_API_READ_TOKEN and TRAWL_API_ACT_TOKEN. Raises ConfigError where neither is set, or one can be guessed."""
        tokens = cls.that_are_set()
        if not (tokens.read or tokens.act):
            raise ConfigError(
                "the API is off: set TRAWL_API_ACT_TOKEN, or TRAWL_API_READ_TOKEN for looking only, for example to what"
                " openssl rand -hex 24 prints"
            )
        return tokens

    @classmethod
    def that_are_set(cls) -> Tokens:
        """Return the tokens of the environment, possibly none. Raises ConfigError for one that can be guessed."""
        given = Api.read()
        tokens = cls(
            read=given.api_read_token.get_secret_value() if given.api_read_token else "",
            act=given.api_act_token.get_secret_value() if given.api_act_token else "",
        )
        for name, token in (("TRAWL_API_READ_TOKEN", tokens.read), ("TRAWL_API_ACT_TOKEN", tokens.act)):
            if token and (len(token) < SHORTEST or not token.isascii() or not token.isprintable()):
                raise ConfigError(f"{name}: must be at least {SHORTEST} printable ASCII characters: openssl rand -hex 24")
        if tokens.read and tokens.read == tokens.act:
            raise ConfigError("TRAWL_API_READ_TOKEN and TRAWL_API_ACT_TOKEN are the same: a reader could act; change one")
        return tokens

    def scope_of(self, header: str) -> Scope:
        """Return the scope of an Authorization header: `Bearer TOKEN`, or `Basic` with the token as the password, for readers
        of feeds.

        Every token is compared, in a time that does not depend on it.
        """
        kind, _, value = header.partition(" ")
        if kind.lower() == "basic":
            try:
                value = base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
            except (binascii.Error, ValueError):
                value = ""
        elif kind.lower() != "bearer":
            value = ""
        given = value.strip().encode()
        is_read, is_act = (hmac.compare_digest(given, token.encode()) for token in (self.read, self.act))
        if is_act and self.act:
            return Scope.ACT
        return Scope.READ if is_read and self.read else Scope.NOTHING


NO_TOKENS = Tokens()
"""No token at all."""


@contextmanager
def audited(client: redis.Redis, request: Request, what: Sequence[object], by: str = "the API") -> Iterator[None]:
    """Record an act and its outcome in the audit, also when it was refused."""
    outcome = "failed"
    try:
        yield
        outcome = "done"
    finally:
        origin = request.client.host if request.client else ""
        act = Act(at=time.time(), by=by, what=without_secrets(what)[:30], outcome=outcome, origin=origin)
        act.add_to(client, FleetKeys().audit())


FREE = 5
"""Wrong tokens without a wait."""
LONGEST_S = 60.0
FORGOTTEN_S = 900.0
"""After so long without a wrong token an address has its allowance again."""
MOST_KNOWN = 10_000
"""Most addresses that are remembered; the one unused for longest goes first."""
_SAME = 16  # wrong tokens of an address that are known again
_IPV6_NETWORK = 64  # bits: the smallest network of a customer

K = TypeVar("K")
V = TypeVar("V")

logger = logging.getLogger(__name__)


class GuessedTooOften(Exception):
    """Another token is looked at in `wait_s` seconds."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"too many wrong tokens: wait {int(wait_s) + 1} s")
        self.headers = {"Retry-After": str(int(wait_s) + 1)}


@dataclass
class _Guesser:
    wrong: int = 0
    last_at: float = 0.0
    until: float = 0.0
    shown: deque[bytes] = field(default_factory=lambda: deque(maxlen=_SAME))


class Guesses:
    """Compares tokens, and counts wrong ones by who shows them. For any thread."""

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = tokens
        self._clock = clock
        self._known: OrderedDict[str, _Guesser] = OrderedDict()
        self._right: OrderedDict[tuple[str, bytes], None] = OrderedDict()
        self._lock = threading.Lock()
        self._secret = sha256(f"trawl browser {tokens.read} {tokens.act}".encode()).digest()

    def scope_of(self, header: str, who: str, *, is_program: bool = False) -> Scope:
        """Return the scope of an Authorization header from `who` (`address_of`, or a browser's name). Raises GuessedTooOften,
        also for a right token, unless `is_program` and it was right there before: else the answer would reveal the right one.
        """
        if not header.partition(" ")[2].strip():
            return Scope.NOTHING
        digest, now = sha256(header.encode("utf-8", "replace")).digest(), self._clock()
        with self._lock:
            guesser = self._known.get(who)
            if guesser is not None and digest in guesser.shown:
                return Scope.NOTHING
            if guesser is not None and guesser.until > now and (who, digest) not in self._right:
                raise GuessedTooOften(guesser.until - now)
            if (scope := self.tokens.scope_of(header)) is Scope.NOTHING:
                self._was_wrong(who, digest, now)
            elif is_program:
                _keep(self._right, (who, digest), None)
            return scope

    def _was_wrong(self, who: str, digest: bytes, now: float) -> None:
        guesser = self._known.get(who) or _Guesser()
        _keep(self._known, who, guesser)
        guesser.wrong = 1 if now - guesser.last_at > FORGOTTEN_S else guesser.wrong + 1
        guesser.last_at = now
        guesser.shown.append(digest)
        if guesser.wrong >= FREE:
            guesser.until = now + min(LONGEST_S, 2.0 ** min(10, guesser.wrong - FREE))
        if guesser.wrong == FREE:
            logger.warning("%d wrong tokens from %s: from now on it waits between two", FREE, in_one_line(who))

    # a browser with a login

    def browser_name(self, scope: Scope) -> str:
        """Return a cookie for a browser in which a token of this scope was right; "" where a higher one can be guessed."""
        if scope is not (Scope.ACT if self.tokens.act else Scope.READ):
            return ""
        name = secrets.token_urlsafe(18)
        return f"{name}.{self._signature(name)}"

    def is_browser(self, cookie: str) -> bool:
        """Return True if that cookie was given by a process with these tokens."""
        name, _, signature = cookie.partition(".")
        return hmac.compare_digest(signature.encode(), self._signature(name).encode())

    def _signature(self, name: str) -> str:
        return hmac.new(self._secret, name.encode("utf-8", "replace"), "sha256").hexdigest()


def _keep(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > MOST_KNOWN:
        known.popitem(last=False)


def address_of(client: tuple[str, int] | None) -> str:
    """Return the client's address, by ASGI's `client`; of IPv6 the network, of which its owner has all."""
    host = client[0] if client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if not isinstance(address, IPv6Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    bits = 128 - _IPV6_NETWORK
    return str(IPv6Address(int(address) >> bits << bits))
