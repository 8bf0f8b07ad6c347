"""Scrapy's command line, as `python -m scrapy` runs it, a fifth cheaper: the collector does not look at what is being imported.

python -W error -m tests.support.scrapy_command crawl forum_list
"""

from __future__ import annotations

import gc
import sys
import warnings

OBJECTS = 50_000
"""New objects between two collections. A crawl of a test makes few; its start, a million that stay."""


def crawl_command(*arguments: str) -> list[str]:
    """`scrapy crawl ARGUMENTS`; a warning is an error."""
    return [sys.executable, "-W", "error", "-m", "tests.support.scrapy_command", "crawl", *arguments]


def main() -> None:
    """Leaves with Scrapy's exit code."""
    gc.set_threshold(OBJECTS)
    # Scrapy makes an event loop and leaves it for uvloop's.
    warnings.filterwarnings("ignore", "unclosed event loop", ResourceWarning)
    from scrapy import cmdline

    vars(cmdline)["_get_commands_from_entry_points"] = lambda *_: {}  # no distribution here has one; to look takes 0.02 s
    cmdline.execute(["scrapy", *sys.argv[1:]])


if __name__ == "__main__":
    main()
