"""DNS answers of a test's choice, for aiohttp in this process, and a crawler's download handler that has them.

TRAWL_TEST_NAMES is a JSON file: name -> a list of answers, each a list of addresses; each question takes the next answer, and
the last one stays. What is asked and connected to is appended to that file's neighbour `.log`. Nothing leaves this machine: a
connection to any other address than loopback is refused.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import aiohappyeyeballs
import aiohttp.connector
from aiohttp.abc import AbstractResolver, ResolveResult

from workers.http.client import DownloadHandler

VARIABLE = "TRAWL_TEST_NAMES"
_connect = aiohappyeyeballs.start_connection
_asked: dict[str, int] = {}


def log_of(names: Path) -> Path:
    """What was asked and connected to, a line each."""
    return names.with_suffix(".log")


def _note(line: str) -> None:
    with log_of(Path(os.environ[VARIABLE])).open("a") as log:
        log.write(f"{line}\n")


def _answer(host: str) -> list[str]:
    answers: list[list[str]] = json.loads(Path(os.environ[VARIABLE]).read_text()).get(host)
    if answers is None:
        raise OSError(None, f"{host} is no name of this test")
    count = _asked[host] = _asked.get(host, 0) + 1
    answer = answers[min(count, len(answers)) - 1]
    _note(f"asked for {host}: {' '.join(answer)}")
    return answer


class OwnNames(AbstractResolver):
    """Answers from the file, and asks nobody."""

    def __init__(self, *_: object, **__: object) -> None: ...

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in _answer(host)
        ]

    async def close(self) -> None: ...


async def connect_on_loopback(addr_infos: Any, **options: Any) -> Any:
    """aiohappyeyeballs', on this machine."""
    for one in addr_infos:
        _note(f"connects to {one[4][0]}")
    near = [one for one in addr_infos if one[4][0] in ("127.0.0.1", "::1")]
    if not near:
        raise ConnectionRefusedError("a test stays on this machine")
    return await _connect(addr_infos=near, **options)


def use() -> None:
    """From now on every new client of aiohttp in this process."""
    aiohttp.connector.DefaultResolver = OwnNames  # type: ignore[misc, assignment]
    aiohttp.connector.aiohappyeyeballs.start_connection = connect_on_loopback


def forget() -> None:
    """The next question is the first."""
    _asked.clear()


class Handler(DownloadHandler):
    """The fleet's, with these names; no answer is kept, as if each were older than the cache keeps it."""

    def __init__(self, crawler: Any) -> None:
        use()
        super().__init__(crawler)
        self._session.connector._use_dns_cache = False  # type: ignore[union-attr]
