"""Middleware before FastAPI: the token of a request is compared before its body is read, which has a bound."""

from __future__ import annotations

import json
from typing import Any

from fastapi.responses import JSONResponse

from .access import Scope
from .body import MOST_BYTES
from .guesses import GuessedTooOften, Guesses, address_of

OPEN_PATHS = frozenset({"/livez"})
_LOOKS = frozenset({"GET", "HEAD"})
_FOREIGN = frozenset({b"cross-site", b"same-site"})


class AsciiJson(JSONResponse):
    """JSON in ASCII: half a surrogate pair, which a caller may send in a name, can be answered."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


class Entrance:
    """ASGI middleware, which alone decides who may read (GET) and who may act: 401, 403 or 429 with nothing read, 413 for a body
    that is too large; what goes on has its whole body.
    """

    def __init__(self, app: Any, *, guesses: Guesses) -> None:
        self._app = app
        self._guesses = guesses

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass it on, or refuse it."""
        if scope.get("path", "").startswith("//"):  # scrapyd-client, of the URL that scrapy startproject writes: it ends with /
            scope = {**scope, "path": "/" + scope["path"].lstrip("/")}
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
        elif refusal := self._refusal(scope):
            await refusal(scope, receive, send)
        elif (body := await _body(scope, receive)) is None:
            refusal = AsciiJson(_refusal(scope, f"a request has at most {MOST_BYTES} bytes"), 413, {"Connection": "close"})
            await refusal(scope, receive, send)
        else:
            await self._app(scope, _given(body, receive), send)

    def _refusal(self, scope: Any) -> JSONResponse | None:
        headers = dict(scope["headers"])
        header = headers.get(b"authorization", b"").decode("latin-1")
        try:
            has = self._guesses.scope_of(header, address_of(scope.get("client")), is_program=True)
        except GuessedTooOften as error:
            return AsciiJson(_refusal(scope, str(error)), 429, {**error.headers, "Connection": "close"})
        if has is Scope.NOTHING:
            # No "Basic": a browser would ask for the token, keep it, and send it for other sites' pages, too.
            refusal = _refusal(scope, "a token is needed: Authorization: Bearer TOKEN")
            return AsciiJson(refusal, 401, {"WWW-Authenticate": "Bearer", "Connection": "close"})
        words = ""
        if scope["method"] not in _LOOKS:
            if has is Scope.READ:
                words = "this token may only read: acting needs that of TRAWL_API_ACT_TOKEN"
            elif headers.get(b"sec-fetch-site") in _FOREIGN:
                words = "a page of another site must not act"
        return AsciiJson(_refusal(scope, words), 403, {"Connection": "close"}) if words else None


def _refusal(scope: Any, words: str) -> dict[str, str]:
    """Return the body of a refusal; on scrapyd's paths with the fields by which its clients show an error (else: KeyError
    'status').
    """
    return {"detail": words} | ({"status": "error", "message": words} if scope["path"].endswith(".json") else {})


async def _body(scope: Any, receive: Any) -> bytes | None:
    """Read the whole body; None where it, or its declared length, is over the bound."""
    length = dict(scope["headers"]).get(b"content-length", b"0")
    if not length.isdigit() or int(length[:20]) > MOST_BYTES:
        return None
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body"):
            return bytes(body)


def _given(body: bytes, receive: Any) -> Any:
    rest = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_it() -> Any:
        return rest.pop() if rest else await receive()

    return receive_it
