"""Sessions of the pages, for reading and for acting: a token opens a session, a cookie keeps it, each form carries a word of its
session.

The tokens are those of the HTTP API. Sessions live in this process: a restart ends them.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

from fastapi import Request, Response

from monitoring.api.access import GuessedTooOften, Guesses, Scope, Tokens, address_of
from monitoring.client_limits import LOOPBACK, host_of

COOKIE, BROWSER = "trawl_session", "trawl_browser"
LASTS_S, BROWSER_LASTS_S = 12 * 3600.0, 180 * 86_400.0
MOST_SESSIONS = 1000
MOST_FORMS = 100  # of one session that wait to be sent
_FOREIGN = frozenset({"cross-site", "same-site"})
_PASSED_ON = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


@dataclass(kw_only=True)
class Session:
    """The session of a user with a valid token."""

    scope: Scope
    ends_at: float  # monotonic
    leave: str = field(default_factory=lambda: secrets.token_urlsafe(18))
    """Word of the form to log out."""
    forms: OrderedDict[str, None] = field(default_factory=OrderedDict)

    def new_form(self) -> str:
        """Return a word for one form, which can be sent once."""
        word = secrets.token_urlsafe(18)
        self.forms[word] = None
        while len(self.forms) > MOST_FORMS:
            self.forms.popitem(last=False)
        return word

    def take(self, word: str) -> bool:
        """Return True if a form with this word was given out and not sent yet."""
        found = next((one for one in self.forms if hmac.compare_digest(one.encode(), word.encode())), None)
        if found is None:
            return False
        del self.forms[found]
        return True


class Login:
    """The sessions of one process."""

    def __init__(self, tokens: Tokens, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.tokens = tokens
        self._clock = clock
        self._guesses = Guesses(tokens, clock=clock)
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def session(self, request: Request) -> Session | None:
        """Return the session that the cookie names, if it has not ended."""
        with self._lock:
            found = self._sessions.get(request.cookies.get(COOKIE, ""))
        return found if found is not None and found.ends_at > self._clock() else None

    def scope(self, request: Request) -> Scope:
        """Return the scope of this request. Without a token to read, a user of this machine may read."""
        if session := self.session(request):
            return session.scope
        if header := request.headers.get("authorization", ""):  # a reader of feeds: it never acts
            with suppress(GuessedTooOften):
                return min(Scope.READ, self._guesses.scope_of(header, _address(request), is_program=True))
            return Scope.NOTHING
        return Scope.READ if not self.tokens.read and is_local(request) else Scope.NOTHING

    def enter(self, token: str, request: Request, response: Response) -> bool:
        """Open a session for a valid token, and give `response` its cookies; False for a wrong one. Raises GuessedTooOften."""
        browser, secure = request.cookies.get(BROWSER, ""), request.url.scheme == "https"
        is_known = self._guesses.is_browser(browser)
        who = browser if is_known else _address(request)
        if (scope := self._guesses.scope_of(f"Bearer {token}", who)) is Scope.NOTHING:
            return False
        if not is_known and (browser := self._guesses.browser_name(scope)):
            response.set_cookie(
                BROWSER, browser, max_age=int(BROWSER_LASTS_S), httponly=True, samesite="strict", secure=secure, path="/login"
            )
        name = secrets.token_urlsafe(24)
        with self._lock:
            self._sessions[name] = Session(scope=scope, ends_at=self._clock() + LASTS_S)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        response.set_cookie(COOKIE, name, max_age=int(LASTS_S), httponly=True, samesite="strict", secure=secure, path="/")
        return True

    def leave(self, request: Request, response: Response) -> None:
        """End the session."""
        with self._lock:
            self._sessions.pop(request.cookies.get(COOKIE, ""), None)
        response.delete_cookie(COOKIE, path="/")


def _address(request: Request) -> str:
    return address_of((request.client.host, request.client.port) if request.client else None)


def is_local(request: Request) -> bool:
    """Return True if the request comes from this machine, asks for it by its name, and no proxy has passed it on."""
    if any(name in request.headers for name in _PASSED_ON) or host_of(request.headers.get("host", "")) not in LOOPBACK:
        return False
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def is_foreign(request: Request) -> bool:
    """Return True if a page of another site has sent this form."""
    if request.headers.get("sec-fetch-site") in _FOREIGN:
        return True
    origin = request.headers.get("origin")
    return origin is not None and origin.partition("://")[2] != request.headers.get("host")
