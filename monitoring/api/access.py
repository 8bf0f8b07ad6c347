"""Access to the API: one token to read, one to act, which may read too; and the audit of each act."""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum

import redis
from fastapi import Request

from redis_components.errors import ConfigError
from workers.environment.variables import Api
from workers.state.audit import Act, append, without_secrets

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
        """Return the scope of an Authorization header: `Bearer TOKEN`, or `Basic` with the token as the password, for scrapyd's
        clients.

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
        append(client, act)
