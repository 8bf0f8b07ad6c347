"""`trawl crawl-once`: one crawl, in a separate process on this machine."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from cli.processes import Interrupts
from cli.views.options import ScrapySettings, SpiderArguments
from redis_components.embedded.child_process import ChildProcess
from redis_components.errors import ConfigError
from workers.jobs.orders import pairs
from workers.process.exit_kinds import ExitKind
from workers.process.options import CrawlerOptions, handed_over
from workers.process.run_module import own_module

TICK_S = 0.1
FORMATS = {".jsonl": "jsonlines", ".jl": "jsonlines", ".json": "json", ".csv": "csv", ".xml": "xml"}


def crawl_once(
    spider: Annotated[str, typer.Argument(metavar="SPIDER", help="Name of the spider.")],
    arguments: SpiderArguments = None,
    settings: ScrapySettings = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write items to this file: .jsonl, .json, .csv or .xml.")
    ] = None,
) -> int:
    """Run one crawl with a spider; its log shows the result. Ctrl-C stops it gracefully, a second Ctrl-C at once.

    An ordinary spider crawls alone, with a queue in memory, and is done when it has no more pages. A spider that is fed from
    Redis works on the fleet's queue until it is stopped, as one more crawler. The task `crawl_once` crawls in a worker of the
    fleet. Exit code 1 when the crawl failed or was stopped.

    **Examples:**

        trawl crawl-once news -a section=world -s CLOSESPIDER_PAGECOUNT=100 -o news.jsonl
        trawl crawl-once news -a section=world -s CLOSESPIDER_TIMEOUT=30
    """
    changed = pairs("-s", settings)
    if output:
        feed = {str(output.resolve()): {"format": _format(output), "encoding": "utf-8", "overwrite": True}}
        changed = {"FEEDS": json.dumps(feed), **changed}
    interrupts, signals = Interrupts(), 0
    interrupts.listen()
    options = CrawlerOptions(spider=spider, arguments=pairs("-a", arguments), settings=changed, alone=True)
    with (
        handed_over(options) as (line, given_fd),
        ChildProcess(own_module("workers.crawler", *line), ends_with_us=True, pass_fds=(given_fd,)) as process,
    ):
        while process.poll() is None:
            while signals < interrupts.count:
                signals += 1
                process.send_signal(signal.SIGTERM)
            time.sleep(TICK_S)
    return 2 if process.returncode == ExitKind.REFUSED.code else int(bool(process.returncode or signals))


def _format(output: Path) -> str:
    if output.suffix not in FORMATS:
        raise ConfigError(f"--output {str(output)!r}: the file name must end with one of {', '.join(FORMATS)}")
    return FORMATS[output.suffix]
