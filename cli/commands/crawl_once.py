"""`trawl crawl-once`: one crawl, in a separate process on this machine."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.processes import Interrupts
from cli.views.options import AsJson, ScrapySettings, SpiderArguments
from cli.views.output import print_json
from cli.views.tables import console, plain_table
from redis_components.embedded.child_process import ChildProcess
from redis_components.errors import ConfigError
from workers.jobs.orders import pairs
from workers.process.exit_kinds import Exit, ExitKind
from workers.process.options import CrawlerOptions, handed_over
from workers.process.pipes import PulseReader, announced_in, pulse_pipe
from workers.process.run_module import own_module
from workers.state.registry import CrawlerRecord

TICK_S = 0.1
FORMATS = {".jsonl": "jsonlines", ".jl": "jsonlines", ".json": "json", ".csv": "csv", ".xml": "xml"}


def crawl_once(
    spider: Annotated[str, typer.Argument(metavar="SPIDER", help="Name of the spider.")],
    arguments: SpiderArguments = None,
    settings: ScrapySettings = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write items to this file: .jsonl, .json, .csv or .xml.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop the crawl after this time.")] = None,
    as_json: AsJson = False,
) -> int:
    """Run one crawl with a spider and show its result. Ctrl-C stops it gracefully, a second Ctrl-C at once.

    An ordinary spider crawls alone, with a queue in memory, and is done when it has no more pages. A spider that is fed from
    Redis works on the fleet's queue until it is stopped, as one more crawler. The task `crawl_once` crawls in a worker of the
    fleet. Exit code 1 when the crawl failed, was stopped, or its time was over.

    **Examples:**

        trawl crawl-once news -a section=world -s CLOSESPIDER_PAGECOUNT=100 -o news.jsonl
        trawl crawl-once news -a section=world --timeout 30 --json
    """
    given, changed = pairs("-a", arguments), pairs("-s", settings)
    result = _crawl(spider, given, changed, timeout, output)
    _show(result, as_json)
    return {"finished": 0, "refused": 2}.get(result["outcome"], 1)


def _format(output: Path) -> str:
    if output.suffix not in FORMATS:
        raise ConfigError(f"--output {str(output)!r}: the file name must end with one of {', '.join(FORMATS)}")
    return FORMATS[output.suffix]


def _crawl(
    spider: str, arguments: dict[str, str], settings: dict[str, str], timeout: float | None, output: Path | None
) -> dict[str, Any]:
    if timeout is not None:
        settings = {"CLOSESPIDER_TIMEOUT": f"{timeout:g}", **settings}
    if output:
        feed = {str(output.resolve()): {"format": _format(output), "encoding": "utf-8", "overwrite": True}}
        settings = {"FEEDS": json.dumps(feed), **settings}
    interrupts = Interrupts()
    interrupts.listen()
    pulse, write_fd = pulse_pipe()
    options = CrawlerOptions(spider=spider, arguments=arguments, settings=settings, pulse_fd=write_fd, alone=True)
    began = time.monotonic()
    with (
        handed_over(options) as (line, given_fd),
        ChildProcess(
            own_module("workers.crawler", *line),
            ends_with_us=True,
            stdout=sys.stderr,  # keeps a spider's prints out of the result
            pass_fds=(write_fd, given_fd),
        ) as process,
    ):
        os.close(write_fd)
        record, announced = _wait(process, pulse, interrupts)
    pulse.close()
    code = process.returncode
    end = Exit.of(code, lived_s=time.monotonic() - began, announced=announced)
    reason = record.note if record else None
    timed_out = reason == "closespider_timeout"
    return {
        "spider": spider,
        "outcome": "timeout" if timed_out else end.kind.label,
        "reason": reason,
        "error": None if end.kind.clean else f"{end}: see the log above",
        "pages": record.pages if record else 0,
        "items": record.items if record else 0,
        "seconds": round(end.lived_s, 3),
        "peak_rss_bytes": record.rss_bytes if record else 0,
        "file": str(output) if output else None,
    }


def _wait(process: ChildProcess, pulse: PulseReader, interrupts: Any) -> tuple[CrawlerRecord | None, ExitKind | None]:
    """Wait for its end; return its last record, with the highest memory of all, and the end that it announced."""
    signals, last, peak, announced = 0, None, 0, None
    while True:
        ended = process.poll() is not None  # before its last lines are read
        while signals < interrupts.count and not ended:
            signals += 1
            process.send_signal(signal.SIGTERM)
        for line in pulse.read():
            announced = announced_in(line) or announced
            with suppress(ValueError):  # other lines, too
                last = CrawlerRecord.from_json(line)
                peak = max(peak, last.rss_bytes)
        if ended:
            return replace(last, rss_bytes=peak) if last else None, announced
        time.sleep(TICK_S)


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    memory = result.pop("peak_rss_bytes")
    shown = {name: f"{n:,}" if isinstance(n, int) else str(n) for name, n in result.items() if n not in (None, "")}
    shown |= {"memory": f"{memory / 2**20:,.0f} MiB"} if memory else {}
    console().print(plain_table(("", ""), [*shown.items()], header=False))
