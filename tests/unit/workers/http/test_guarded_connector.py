"""The connector of crawlers and probes, with a name server that does not answer."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from workers.http import client
from workers.http.client import GuardedConnector


class Silent(AbstractResolver):
    """Never answers."""

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        await asyncio.Event().wait()
        return []

    async def close(self) -> None: ...


def test_a_name_server_that_does_not_answer_is_a_name_that_is_not_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "NAME_S", 0.01)

    async def asked() -> None:
        async with aiohttp.ClientSession(connector=GuardedConnector(resolver=Silent())) as session:
            await session.get("http://forum.test/")

    with pytest.raises(aiohttp.ClientConnectorDNSError, match=r"no name server answered within 0\.01 s"):
        asyncio.run(asked())
