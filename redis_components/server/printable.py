"""Text of others (pages, Redis, processes) made safe to show: on a terminal, in a log, in JSON. Pure but for `safe_records`.

| characters                                  | why they are dangerous                                            |
|---------------------------------------------|-------------------------------------------------------------------|
| C0 without newline and tab, DEL, C1         | escape sequences: title of the window, clipboard, cleared screen; |
|                                             | `\\r` and `\\b` overwrite earlier text                              |
| U+2028, U+2029 (and NEL, VT, FF, FS, GS, RS)| end a line for some readers: a forged log line                    |
| U+202A-202E, U+2066-2069                    | reorder what stands around them ("Trojan source")                 |
| lone surrogates                             | cannot be encoded: printing them fails                            |

Each is shown as its escape (`\\x1b`, `\\u202e`), so nothing is lost and nothing acts.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from redis_components.errors import TrawlError

_CLASS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[{_CLASS}]")
_UNSAFE_OR_BREAK = re.compile(f"[{_CLASS}\n]")
_RAW_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_FLUSH_LEFT = re.compile(r"\n(?=\S)")


def printable(text: str) -> str:
    """Return the text with characters that act on a terminal as visible escapes; newlines and tabs stay. Idempotent."""
    return _UNSAFE.sub(_escaped, text) if _UNSAFE.search(text) else text


def in_one_line(text: str) -> str:
    """Return the printable text with newlines as `\\n`: for a name, or a reason, in the middle of a line."""
    return _UNSAFE_OR_BREAK.sub(_escaped, text)


def log_entry(text: str) -> str:
    """Return a message for a log: lines after the first are indented, so none of them can pass for an entry. Idempotent."""
    return _FLUSH_LEFT.sub("\n  ", printable(text)) if "\n" in text or _UNSAFE.search(text) else text


def in_json(document: str) -> str:
    """Return a JSON document with the same values and without characters that act on a terminal (JSON allows DEL,
    C1, bidi raw).
    """
    return _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


class SafeRecord(logging.LogRecord):
    """A log record whose message and traceback stay one entry, also with text of a page, a URL or an exception."""

    def getMessage(self) -> str:  # noqa: N802 - the name that logging calls
        return log_entry(super().getMessage())

    @property
    def exc_text(self) -> str | None:
        """The traceback, once a formatter has made it: the exception's own words are data, too."""
        return self._exc_text

    @exc_text.setter
    def exc_text(self, text: str | None) -> None:
        self._exc_text = text if text is None else "\n".join(f"  {line}" for line in printable(text).split("\n"))


def safe_records() -> None:
    """Make every record that is logged in this process from now on, and in forked ones, a `SafeRecord`."""
    logging.setLogRecordFactory(SafeRecord)


def _escaped(found: re.Match[str]) -> Any:
    code = ord(found[0])
    if found[0] == "\n":
        return "\\n"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_WORDS = r"pass|pwd|secret|token|auth(?!or)|bearer|cookie|session|key|credential|signature"
SECRET_NAME = rf"(?<![\w-])(?=[\w-]*?(?:{_WORDS}))[\w-]++"
"""Of a variable, an argument or an option. A name is looked at once: one search of it, from its beginning."""
HIDDEN = "***"

_IS_SECRET = re.compile(SECRET_NAME, re.IGNORECASE)
_SECRET = re.compile(rf"({SECRET_NAME}[\"']?\s*+[=:]).+", re.IGNORECASE | re.DOTALL)
_LONGEST = 200  # characters of one argument
_SEARCHED = 2_000  # characters of one argument in which secrets are looked for, before it is cut
_HEAD = re.compile(r"((?:[\w+.-]+://)?)([^:@/]*)", re.ASCII)
_USER = re.compile(r"[\w.%~-]*", re.ASCII)
_FORGOTTEN_HOST = re.compile(r"^([\w+]+://)([^/?@:,\[\]]*):(?!\d{0,5}(?:[/?,;#]|$)).*", re.ASCII | re.DOTALL)
"""A login without its host: `redis://user:password`."""
_LOGIN = re.compile(r"(?<=://)([^\s:/@'\"]{0,200}):[^\s/@'\"]{1,500}@")
# A value that is not closed goes on to the end, which hides more and is looked for once.
_TEXT = r"'(?:[^'\\]|\\.)*+(?:'|\\?\Z)|\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)"
_PAIR = re.compile(
    rf"(['\"]{SECRET_NAME}['\"]\s*+:\s*+)(?:{_TEXT}|\[[^\]]*(?:\]|\Z)|\{{[^}}]*(?:\}}|\Z)|[^,}}\]]+)", re.IGNORECASE | re.DOTALL
)


def masked_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by name, secrets hidden, logins of URLs within the others too."""
    return {name: HIDDEN if _IS_SECRET.fullmatch(name) else _in_value(value) for name, value in values.items()}


def masked_text(text: str) -> str:
    """Return a text with hidden passwords of URLs, and hidden values that are named like a secret, as in `{'token': '***'}`."""
    return _LOGIN.sub(rf"\1:{HIDDEN}@", _PAIR.sub(rf"\1'{HIDDEN}'", text))


def masked(url: str) -> str:
    """Return the URL as it may be shown: without password and options, also where it is malformed."""
    # Up to the last @, before anything is parsed: an unquoted / or ? in a password would end up in another part of the URL.
    login, at, rest = url.rpartition("@")
    scheme, user = _HEAD.match(login).groups() if at else ("", "")  # type: ignore[union-attr]  # it fits each text
    if at and login == f"{scheme}{user}" and _USER.fullmatch(user):
        shown = f"{login}@"
    elif at:
        shown = f"{scheme}{user if _USER.fullmatch(user) else ''}:***@"
    else:
        shown, rest = "", _FORGOTTEN_HOST.sub(r"\1\2:***", rest)
    return in_one_line(f"{shown}{rest.partition('?')[0]}")


def without_secrets(arguments: Iterable[object]) -> tuple[str, ...]:
    """Return arguments as they may be kept: without passwords of URLs and values that are named like a secret, also where the
    value is the next argument (`--token VALUE`).
    """
    kept = []
    is_value = False
    for text in (str(one)[:_SEARCHED] for one in arguments):
        shown = _SECRET.sub(rf"\1{HIDDEN}", masked(text) if "://" in text else text)
        kept.append(HIDDEN if is_value and not text.startswith("-") else in_one_line(shown)[:_LONGEST])
        is_value = text.startswith("-") and bool(_IS_SECRET.fullmatch(text))
    return tuple(kept)


def _in_value(value: Any) -> Any:
    return _LOGIN.sub(rf"\1:{HIDDEN}@", value) if isinstance(value, str) else value


_ERROR_CLASS = re.compile(r"(?<![\w.])(?:[a-z_]\w*\.)*((?:[A-Z][a-z0-9]*)+?(?:Error|Exception|Failure))\b")
_NAME_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_FULL = (errno.ENOSPC, errno.EDQUOT)
_MOST_CAUSES = 10


def in_words(error: BaseException) -> str:
    """Return an error in one line: what a connection or a disk met, else its text behind its kind (`value error: no date`)."""
    if isinstance(error, TrawlError):
        return " ".join(str(error).split())
    is_redis = type(error).__module__.partition(".")[0] == "redis"
    for cause in _causes(error):
        if found := _met(cause):
            return f"Redis does not answer ({found})" if is_redis else found
    text = without_class_names(" ".join(str(error).split()))
    kind = "Redis" if is_redis else kind_of(error)
    return f"{kind}: {text}" if text else kind


def kind_of(error: BaseException) -> str:
    """Return the kind of an error in words: `module not found`."""
    return worded(type(error).__name__)


def without_class_names(text: str) -> str:
    """Return the text with words in place of the names of exceptions: `ModuleNotFoundError: x` as `module not found: x`."""
    return _ERROR_CLASS.sub(lambda found: worded(found[1]), text) if "Error" in text or "Exc" in text or "Fail" in text else text


def worded(name: str) -> str:
    """Return the name of an exception in words: `connection refused` for `ConnectionRefusedError`."""
    words = _NAME_PARTS.sub(" ", name).lower().split()
    return " ".join(words[:-1] if len(words) > 2 else words)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what has led to it."""
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if found is None:
            return
        yield found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)


def _met(error: BaseException) -> str:
    """Return what a connection or a file met; "" for other errors."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"TLS: the certificate is not accepted ({error.verify_message})"
        case ssl.SSLError():
            return f"TLS: the connection is not made ({(error.reason or 'no reason').lower().replace('_', ' ')})"
        case socket.gaierror():
            return f"the name is not resolved ({(error.strerror or str(error)).lower()})"
        case TimeoutError():
            return "no answer in time"
        case OSError() if error.errno in _FULL:
            return f"the disk is full{_place(error)}"
        case ConnectionError() if not error.errno:
            return "the connection broke"
        case OSError() if error.errno:
            return f"{os.strerror(error.errno).lower()}{_place(error)}"
    return ""


def _place(error: OSError) -> str:
    return f": {error.filename}" if error.filename is not None else ""


def span(seconds: float) -> str:
    """Format a duration: `3 s`, `12 min`, `5 h`, `9 d`."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"
