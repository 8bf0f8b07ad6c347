"""Why a request failed, for people."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from twisted.python.failure import Failure

from redis_components.scrapy_glue.failure_reasons import plain, reason_of


def test_a_refused_connection_names_no_object_of_ours() -> None:
    async def ask() -> None:
        async with aiohttp.ClientSession() as session:
            await session.get("http://127.0.0.1:1/")

    with pytest.raises(aiohttp.ClientConnectorError) as refused:
        asyncio.run(ask())
    assert "ssl:" in str(refused.value)
    assert plain(str(refused.value)).startswith("Cannot connect to host 127.0.0.1:1 [")
    error = DownloadConnectionRefusedError("Cannot connect to host h:1 ssl:<ssl.SSLContext object at 0x7fcd43d88200> [no route]")
    assert reason_of(Failure(error)) == "the server does not answer (Cannot connect to host h:1 [no route])"
    error.__cause__ = refused.value
    assert reason_of(Failure(error)) == "the server does not answer (connection refused)"


def test_no_class_of_python_stands_in_a_reason_why_a_server_is_silent() -> None:
    reasons = {
        DownloadTimeoutError("Getting http://x/ took longer than 20 seconds."): "the server does not answer (time-out)",
        CannotResolveHostError("h"): "the server does not answer (its name is not resolved: h)",
        ResponseDataLossError("x"): "the server broke off its response",
        DownloadFailedError("not enough data"): "the server does not answer (not enough data)",
        ValueError("of a callback"): "value error: of a callback",
    }
    assert {error: reason_of(Failure(error)) for error in reasons} == reasons


def test_what_a_site_says_about_tls_stays() -> None:
    assert plain("wants ssl:required [x]") == "wants ssl:required [x]"
