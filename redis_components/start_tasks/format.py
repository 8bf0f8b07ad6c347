"""Start tasks as text: a bare URL, or JSON with the fields of `StartTask`. A wrong task is refused with the field's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from redis_components.errors import BadStartTask

LONGEST_DELAY_S = 10 * 365 * 86_400


class StartTask(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A start task; `docs/start-tasks.md` describes each field. A bare URL stands for `{"url": ...}`."""

    url: str
    format: int = 1
    method: str | None = None
    headers: dict[str, str | list[str]] = {}
    cookies: dict[str, str] | list[dict[str, str | bool]] = {}
    body: str = ""
    formdata: dict[str, str | list[str]] = {}
    json: Any = None
    meta: dict[str, Any] = {}
    cb_kwargs: dict[str, Any] = {}
    priority: int = 0
    delay_s: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_DELAY_S)] = 0.0
    callback: str | None = None
    errback: str | None = None
    dont_filter: bool = True
    encoding: str = "utf-8"
    flags: list[str] = []


class _AnyFields(StartTask, forbid_unknown_fields=False, kw_only=True):
    """A start task with fields of a newer version, or of a user's own."""


FORMAT = 1
"""Version of the fields above. A later one is written into each task that has one of its fields."""
WEB = frozenset({"http", "https"})
"""The schemes of URLs that every crawl fetches."""
FIELDS = StartTask.__struct_fields__
_BODIES: dict[str, Callable[[StartTask], bool]] = {
    "body": lambda task: task.body != "",
    "formdata": lambda task: bool(task.formdata),
    "json": lambda task: task.json is not None,
}
_decode = msgspec.json.Decoder(StartTask).decode
_decode_any = msgspec.json.Decoder(_AnyFields).decode
_is_url = re.compile(r"[a-z][a-z0-9+.\-]*://|about:|data:", re.IGNORECASE).match
_is_token = re.compile(r"[-!#$%&'*+.^_`|~0-9A-Za-z]+").fullmatch  # RFC 9110
_AT = re.compile(r"(.*) - at `\$\.?(\w*+)([^`]*)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")


def read(data: bytes | str, encoding: str = "utf-8", *, others_to_meta: bool = False) -> StartTask:
    """Return the start task in `data`. Raises BadStartTask with the field at fault and its expected form.

    `others_to_meta`: unknown fields go into `meta`. Those of a newer `format` are left out.
    """
    try:
        text = data if isinstance(data, str) else data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise BadStartTask(f"it is not text in {encoding} ({exc.reason} at byte {exc.start}); see redis_encoding") from None
    text = text.strip()
    if not text.startswith("{"):
        if not _is_url(text):
            raise BadStartTask("it is neither a URL with a scheme nor a JSON object")
        return StartTask(url=text)
    try:
        task = _with_others(text, to_meta=others_to_meta)
    except msgspec.ValidationError as exc:
        raise BadStartTask(_explained(str(exc))) from None
    except msgspec.DecodeError as exc:
        hint = " (half a surrogate pair is not text)" if r"\ud" in text.lower() else ""
        raise BadStartTask(f"it is not valid JSON: {exc}{hint}") from None
    except RecursionError:
        raise BadStartTask("it is nested too deeply") from None
    if not _is_url(task.url):
        raise BadStartTask(f"field 'url': {task.url!r} has no scheme, such as https://")
    if task.method is not None and not _is_token(task.method):
        raise BadStartTask(f"field 'method': {task.method!r:.100} is not an HTTP method")
    for header in task.headers:
        if not _is_token(header):
            raise BadStartTask(f"field 'headers': {header!r:.100} is not the name of a header")
    given = [field for field, is_given in _BODIES.items() if is_given(task)]
    if len(given) > 1:
        raise BadStartTask(f"fields {given[0]!r} and {given[1]!r}: a request has one body, give one of {', '.join(_BODIES)}")
    return task


def _with_others(text: str, *, to_meta: bool) -> StartTask:
    """Decode a task; where it has unknown fields that are not a mistake, without them or with them in `meta`."""
    try:
        return _decode(text)
    except msgspec.ValidationError as exc:
        if not _UNKNOWN.match(str(exc)):
            raise
        task = _decode_any(text)
        if task.format <= FORMAT:
            if not to_meta:
                raise
            fields = msgspec.json.decode(text)
            task.meta = {name: value for name, value in fields.items() if name not in FIELDS} | task.meta
        return task


def _explained(message: str) -> str:
    """Return msgspec's message in the terms of this format."""
    if found := _UNKNOWN.match(message):
        return f"unknown field {found[1]!r:.100}; known are {', '.join(FIELDS)} (data of a form goes into 'formdata')"
    if found := _MISSING.match(message):
        return f"field {found[1]!r} is missing"
    if found := _AT.match(message):
        what, field, inside = found.groups()
        place = f"a value in field {field!r}" if inside else f"field {field!r}"
        return f"{place}: {what[:1].lower()}{what[1:]}{_hint(what)}"
    return message


def _hint(what: str) -> str:
    expected, _, got = what.partition(", got ")
    if got == "`str`" and expected in ("Expected `int`", "Expected `bool`"):
        return "; write it without quotes"
    if got in ("`int`", "`float`", "`bool`") and "`str" in expected:
        return "; write it in quotes"
    return ""
