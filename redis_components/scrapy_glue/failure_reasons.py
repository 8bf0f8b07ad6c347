"""Reasons of failed requests in words, for dead letters, reports and logs."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from scrapy.spidermiddlewares.httperror import HttpError

from redis_components.server.printable import in_words, without_class_names

if TYPE_CHECKING:
    from twisted.python.failure import Failure

_TLS_SETTINGS = re.compile(r" ssl:(?:<[^<>]*>|default|True|False|None)(?= \[|$)")


def reason_of(failure: Failure) -> str:
    """Return the reason of a failure for display: `HTTP 404`, why there is no response, or the error in words."""
    if isinstance(failure.value, HttpError):
        return f"HTTP {failure.value.response.status}"
    if why := silence_of(failure.value):
        return f"the server {why}"
    return plain(in_words(failure.value)) if failure.value else ""


def silence_of(error: BaseException | None) -> str:
    """Return in words why a server gave no response, as in `does not answer (connection refused)`; "" for other errors."""
    if type(error) is CannotResolveHostError:  # not the fleet's subclass, which names an address
        return f"does not answer (its name is not resolved: {plain(str(error))})"
    if isinstance(error, DownloadTimeoutError | TimeoutError):
        return "does not answer (time-out)"
    if isinstance(error, ResponseDataLossError):
        return "broke off its response"
    if isinstance(error, DownloadConnectionRefusedError):
        number = getattr(getattr(error.__cause__, "os_error", error.__cause__), "errno", None)
        known = os.strerror(number).lower() if isinstance(number, int) and number > 0 else ""
        return f"does not answer ({known or plain(str(error))})"
    return f"does not answer ({plain(str(error))})" if isinstance(error, DownloadFailedError) else ""


def plain(message: str) -> str:
    """Return an exception's message without the object of the TLS settings, which aiohttp names also where the
    address is http.
    """
    return without_class_names(_TLS_SETTINGS.sub("", message))
