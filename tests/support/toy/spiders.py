"""Spiders whose whole life is their mode: `-a mode=NAME`, or TOY_MODE in the environment."""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import scrapy
from scrapy.http import Response

BROWSER = """
import mmap, os, sys, time
reserved = mmap.mmap(-1, 64 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)  # MAP_NORESERVE
if os.fork():
    time.sleep(10)  # until the supervisor has seen the browser, on a busy machine, too
    os._exit(0)
os.setsid()
print("browser:", os.getpid(), flush=True)
touched = b"1" * (int(sys.argv[1]) << 20)
time.sleep(3600)
"""


class Toy(scrapy.Spider):
    """`crawl` fetches five pages a second for ever, `rest` none after its first, `fetch` one page from `url`, `finish` ends after
    one page; others fail.

    After 50 pages `hang` blocks the reactor, `freeze` the whole process (C code that keeps the GIL), `swell` takes `mb` MiB in C
    code and keeps the GIL. `grow` keeps `mb` MiB for each page. With its first page `browser` starts a process that reserves
    64 GiB, and touches `mb` MiB in a process of its own whose parent ends.
    """

    name = "toy"
    item_consumer = "forum_writer"  # some tests have its items stored
    mb = 8

    def __init__(self, mode: str = "", url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mode = mode or os.environ.get("TOY_MODE", "crawl")
        self.url = url
        self.kept: list[Any] = []
        if self.mode == "raise":
            raise RuntimeError("this spider cannot be made")

    async def start(self) -> AsyncIterator[Any]:
        if self.mode == "start-error":
            raise RuntimeError("this spider cannot start")
        if self.mode.startswith("exit"):  # `exit`, or `exit 2`
            os._exit(int(self.mode.removeprefix("exit") or 9))
        if self.mode == "fetch":
            yield scrapy.Request(self.url)
        elif self.mode == "finish":
            yield scrapy.Request("data:,one")
        else:
            for page in range(1_000_000):
                yield scrapy.Request(f"data:,{page}")
                await asyncio.sleep({"crawl": 0.2, "rest": 86_400}.get(self.mode, 0.02))

    def parse(self, response: Response) -> Any:
        if self.mode in ("hang", "freeze", "swell") and response.url != "data:,50":  # not while it starts
            return
        if self.mode == "sys.exit":
            sys.exit(2)
        if self.mode not in ("crawl", "rest", "finish"):
            self.logger.info(self.mode)
        if self.mode == "hang":
            time.sleep(3600)
        if self.mode == "swell":
            sys.setswitchinterval(3600)  # nor between the two calls
            self.kept.append(ctypes.create_string_buffer(int(self.mb) << 20))
            ctypes.PyDLL(None).memset(self.kept[-1], 1, int(self.mb) << 20)
        if self.mode in ("freeze", "swell"):
            ctypes.PyDLL(None).sleep(3600)
        if self.mode == "grow":
            self.kept.append(b"1" * (int(self.mb) << 20))
        if self.mode == "browser" and not self.kept:
            self.kept.append(subprocess.Popen([sys.executable, "-c", BROWSER, str(self.mb)]))
        if self.mode == "fetch":
            self.logger.info("parsed %s", response.url)
        yield {"page": response.url}


class ToyTwo(Toy):
    """A second service."""

    name = "toy_two"
