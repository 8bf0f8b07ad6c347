"""A spider on the shared frontier that does on demand what kills a crawler: for the ways to die (`tests.support.deaths`)."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from scrapy.http import HtmlResponse

from tests.support.link_spiders import LinksSpider

FATES_VARIABLE = "TRAWL_TEST_FATES"  # the folder in which an order is put
STEP_BYTES = 8 << 20
OWNER = next((word.partition("=")[2] for word in sys.argv if word.startswith("--owner=")), "nobody")


class Fate(Enum):
    """What the crawler that parses the next page shall suffer. Put it there with `order`; one crawler takes it."""

    HANG = "hang"  # the reactor waits for ever
    HANG_IN_C = "hang-in-c"  # so does C code that holds the interpreter: no thread of the process runs any more
    GROW = "grow"  # 8 MB more with each page
    SWELL = "swell"  # memory without end, within one page

    def order(self, folder: Path) -> None:
        """Have the next crawler that parses a page suffer this."""
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / "fate.new"
        written.write_text(self.value)
        written.replace(folder / "fate")

    @classmethod
    def take(cls, folder: Path) -> Fate | None:
        """The order, if there is one that nobody has taken; `taken` then tells who it was: pid and time."""
        mine = folder / f"mine-{os.getpid()}"
        try:
            (folder / "fate").rename(mine)
        except FileNotFoundError:
            return None
        fate = cls(mine.read_text())
        mine.write_text(f"{os.getpid()} {time.time()}")
        mine.replace(folder / "taken")
        return fate


class MortalSpider(LinksSpider):
    """Follows every link, a few at a time; its user agent is its owner's id, so the site knows which process asked."""

    name = "mortal"
    custom_settings = {  # noqa: RUF012 - the form that Scrapy wants
        "MAX_IDLE_TIME_BEFORE_CLOSE": 0,
        "CONCURRENT_REQUESTS": 4,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 4,
        "USER_AGENT": OWNER,
    }
    _grows = False
    _hoard: list[bytearray] = []  # noqa: RUF012 - one spider in a process

    def parse(self, response: HtmlResponse, **kwargs: Any) -> Iterator[Any]:
        match Fate.take(Path(os.environ[FATES_VARIABLE])):
            case Fate.HANG:
                time.sleep(3600)
            case Fate.HANG_IN_C:
                ctypes.PyDLL(None).sleep(3600)  # unlike CDLL, it does not let go of the interpreter
            case Fate.GROW:
                self._grows = True
            case Fate.SWELL:
                while True:
                    self._hoard.append(bytearray(os.urandom(1 << 16) * (STEP_BYTES >> 16)))
            case None:
                pass
        if self._grows:
            self._hoard.append(bytearray(os.urandom(1 << 16) * (STEP_BYTES >> 16)))
        yield from super().parse(response)
