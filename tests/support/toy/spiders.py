"""Spiders whose whole life is their mode: `-a mode=NAME`, or TOY_MODE in the environment."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import scrapy
from scrapy.http import Response


class Toy(scrapy.Spider):
    """`crawl` fetches pages for ever, `fetch` one page from `url`, `finish` ends after one page; other modes are ways to fail."""

    name = "toy"

    def __init__(self, mode: str = "", url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mode = mode or os.environ.get("TOY_MODE", "crawl")
        self.url = url
        if self.mode == "raise":
            raise RuntimeError("this spider cannot be made")

    async def start(self) -> AsyncIterator[Any]:
        if self.mode == "start-error":
            raise RuntimeError("this spider cannot start")
        if self.mode == "exit":
            os._exit(9)
        if self.mode == "fetch":
            yield scrapy.Request(self.url)
        elif self.mode == "finish":
            yield scrapy.Request("data:,one")
        else:
            for page in range(1_000_000):
                yield scrapy.Request(f"data:,{page}")
                await asyncio.sleep(0.02)

    def parse(self, response: Response) -> Any:
        if self.mode == "hang":
            time.sleep(3600)
        if self.mode == "fetch":
            self.logger.info("parsed %s", response.url)
        yield {"page": response.url}


class ToyTwo(Toy):
    """A second service."""

    name = "toy_two"
