"""Callbacks of spiders, called without a crawl."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any


def collected(output: AsyncIterator[Any]) -> list[Any]:
    """What an asynchronous callback yields."""

    async def collect() -> list[Any]:
        return [one async for one in output]

    return asyncio.run(collect())
