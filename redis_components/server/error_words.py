"""Errors in words for people: pages, `trawl status` and reasons name no class of Python. Pure."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections.abc import Iterator

from redis_components.errors import TrawlError

_CLASS = re.compile(r"(?<![\w.])(?:[a-z_]\w*\.)*((?:[A-Z][a-z0-9]*)+?(?:Error|Exception|Failure))\b")
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
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
    return _CLASS.sub(lambda found: worded(found[1]), text) if "Error" in text or "Exc" in text or "Fail" in text else text


def worded(name: str) -> str:
    """Return the name of an exception in words: `connection refused` for `ConnectionRefusedError`."""
    words = _PARTS.sub(" ", name).lower().split()
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
