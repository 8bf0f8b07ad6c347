"""The link site's settings for a fleet: crawlers wait for work, and a file `broken` in the data folder makes new ones refuse."""

import os
from pathlib import Path

from tests.support.link_settings import *  # noqa: F403 - settings are the module's names

if (Path(os.environ["TRAWL_DATA_DIR"]) / "broken").exists():
    raise ImportError("this version is broken")

MAX_IDLE_TIME_BEFORE_CLOSE = 0
ROBOTSTXT_OBEY = False
CONCURRENT_REQUESTS = 4
