"""Bodies of requests, and the middleware before FastAPI: the token is compared before the body is read, which has a bound."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from .access import GuessedTooOften, Guesses, Scope, address_of

MOST_BYTES = 1024 * 1024
MOST_FIELDS = 2000


MOST_WHOLE, MOST_CRAWLERS = 2**63, 1000


def _finite(value: Any) -> Any:
    """Return what JSON and Redis can hold as it is. Raises ValueError for other numbers, such as 1e999, however deep."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number must be finite")
    if isinstance(value, int) and abs(value) >= MOST_WHOLE:
        raise ValueError("a whole number must be below 2**63")
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite(one)
    return value


Anything = Annotated[Any, AfterValidator(_finite)]


class Body(BaseModel):
    """A body whose types are exact, so `true` and "1" are refused as numbers, and whose numbers are finite."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class JobBody(Body):
    """A job to start."""

    service: str = Field(description="A service of the fleet, or a spider of the nodes' project.")
    arguments: dict[str, Anything] = Field(default_factory=dict, description="Arguments of the spider.")
    settings: dict[str, Anything] = Field(default_factory=dict, description="Scrapy settings that are numbers or switches.")
    crawlers: int = Field(1, ge=1, le=MOST_CRAWLERS, description="Crawlers that share the crawl.")
    urls: list[str] = Field(default_factory=list, max_length=1000, description="Start tasks of a spider fed from Redis.")
    id: str = Field("", description="The end of the job's name; by default a new one.")


class UrlsBody(Body):
    """URLs for a service that is fed from Redis."""

    urls: list[str | dict[str, Anything]] = Field(max_length=10_000)
    unique: bool = Field(False, description="Leave out what the crawl requested before.")


async def form_of(request: Request) -> dict[str, list[str]]:
    """Parse the fields of a posted form, `application/x-www-form-urlencoded`. Raises HTTPException."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BYTES:
            raise HTTPException(413, f"a request has at most {MOST_BYTES} bytes")
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(400, f"the form cannot be read: {error}") from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


FormFields = Annotated[dict[str, list[str]], Depends(form_of)]


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
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
        elif refusal := self._refusal(scope):
            await refusal(scope, receive, send)
        elif (body := await _body(scope, receive)) is None:
            refusal = AsciiJson({"detail": f"a request has at most {MOST_BYTES} bytes"}, 413, {"Connection": "close"})
            await refusal(scope, receive, send)
        else:
            await self._app(scope, _given(body, receive), send)

    def _refusal(self, scope: Any) -> JSONResponse | None:
        headers = dict(scope["headers"])
        header = headers.get(b"authorization", b"").decode("latin-1")
        try:
            has = self._guesses.scope_of(header, address_of(scope.get("client")), is_program=True)
        except GuessedTooOften as error:
            return AsciiJson({"detail": str(error)}, 429, {**error.headers, "Connection": "close"})
        if has is Scope.NOTHING:
            # No "Basic": a browser would ask for the token, keep it, and send it for other sites' pages, too.
            refusal = {"detail": "a token is needed: Authorization: Bearer TOKEN"}
            return AsciiJson(refusal, 401, {"WWW-Authenticate": "Bearer", "Connection": "close"})
        words = ""
        if scope["method"] not in _LOOKS:
            if has is Scope.READ:
                words = "this token may only read: acting needs that of TRAWL_API_ACT_TOKEN"
            elif headers.get(b"sec-fetch-site") in _FOREIGN:
                words = "a page of another site must not act"
        return AsciiJson({"detail": words}, 403, {"Connection": "close"}) if words else None


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
