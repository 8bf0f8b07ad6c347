"""`trawl crawl-once`: one crawl, in a separate process on this machine or in a worker of the fleet."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.access import redis_client
from cli.processes import Interrupts
from cli.views.options import AsJson, ScrapySettings, SpiderArguments
from cli.views.output import complain, print_json
from cli.views.tables import console, plain_table
from redis_components.embedded.child_process import ChildProcess
from redis_components.errors import ConfigError, TrawlError
from workers.jobs.orders import pairs
from workers.process.exit_kinds import MOST_ITEMS, Exit, ExitKind, OnceOutcome, OnceResult
from workers.process.options import CrawlerOptions, handed_over
from workers.process.pipes import PulseReader, announced_in, pulse_pipe
from workers.process.run_module import own_module
from workers.state.registry import CrawlerRecord

TICK_S = 0.1
FORMATS = {".jsonl": "jsonlines", ".jl": "jsonlines", ".json": "json", ".csv": "csv", ".xml": "xml"}
PATIENCE_S = 60.0  # for the result of a crawl that is stopping
NO_WORKER_S = 5.0  # before the warning that no worker has taken it


def crawl_once(
    spider: Annotated[str, typer.Argument(metavar="SPIDER", help="Name of the spider.")],
    arguments: SpiderArguments = None,
    settings: ScrapySettings = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write items to this file: .jsonl, .json, .csv or .xml.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(min=0.1, metavar="SECONDS", help="Stop the crawl after this time.")] = None,
    worker: Annotated[
        bool, typer.Option("--worker", help="Run in a worker of the fleet (task crawl_once), with its log in the worker's.")
    ] = False,
    queue: Annotated[str, typer.Option(metavar="NAME", help="With --worker: the queue to send the task to.")] = "control",
    as_json: AsJson = False,
) -> int:
    """Run one crawl with a spider and show its result. Ctrl-C stops it gracefully, a second Ctrl-C at once.

    An ordinary spider crawls alone, with a queue in memory, and is done when it has no more pages. A spider that is fed from
    Redis works on the fleet's queue until it is stopped, as one more crawler, and needs a process: without `--worker`.

    With `--worker` the crawl takes at most an hour (60 s without `--timeout`), only settings that are numbers or switches can be
    given, and at most 1,000 items come back. Exit code 1 when it failed, was stopped, or its time was over.

    **Examples:**

        trawl crawl-once news -a section=world -s CLOSESPIDER_PAGECOUNT=100 -o news.jsonl
        trawl crawl-once news -a section=world --worker --timeout 30 --json
    """
    given, changed = pairs("-a", arguments), pairs("-s", settings)
    if output and _format(output) != "jsonlines" and worker:
        raise ConfigError(f"--output {str(output)!r}: with --worker the file name must end with .jsonl")
    if worker:
        result = _in_a_worker(spider, given, changed, timeout or 60.0, output, queue)
    else:
        result = _in_a_process(spider, given, changed, timeout, output)
    _show(result, as_json)
    return {"finished": 0, "refused": 2}.get(result["outcome"], 1)


def _format(output: Path) -> str:
    if output.suffix not in FORMATS:
        raise ConfigError(f"--output {str(output)!r}: the file name must end with one of {', '.join(FORMATS)}")
    return FORMATS[output.suffix]


# in a separate process


def _in_a_process(
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


# in a worker of the fleet


def _in_a_worker(
    spider: str, arguments: dict[str, str], settings: dict[str, str], timeout: float, output: Path | None, queue: str
) -> dict[str, Any]:
    sent = {"arguments": arguments, "settings": settings, "timeout": timeout, "items": MOST_ITEMS if output else 0}
    with redis_client():
        answer = _result_of(spider, sent, queue)
    if answer is None:
        result = OnceResult(spider=spider, outcome=OnceOutcome.CANCELLED, reason="before it began")
    else:
        result = OnceResult(**answer)
    if output:
        _write(result, output)
    shown = asdict(result)
    del shown["kept"]
    return {**shown, "file": str(output) if output else None}


def _result_of(spider: str, sent: dict[str, Any], queue: str) -> dict[str, Any] | None:
    """Return the task's result; None when it was cancelled before it began. Raises the error of the task."""
    from celery.exceptions import TaskRevokedError, TimeoutError, WorkerLostError

    from tasks import cancel_crawl, crawl_once

    interrupts = Interrupts()
    interrupts.listen()
    answer = crawl_once.apply_async((spider,), sent, queue=queue, expires=3600)
    began, stopped_at, warned = time.monotonic(), None, False
    while True:
        try:
            return dict(answer.get(timeout=TICK_S))
        except TimeoutError:
            pass
        except TaskRevokedError:
            return None
        except WorkerLostError as error:
            raise TrawlError(f"the worker's process ended in the middle of the crawl: {error}") from error
        now = time.monotonic()
        if interrupts.asked and stopped_at is None:
            complain("stopping: pages in flight are finished (Ctrl-C again: do not wait)")
            cancel_crawl(answer.id)
            stopped_at = now
        if interrupts.impatient or (stopped_at is not None and now - stopped_at > PATIENCE_S):
            return None
        if not warned and now - began > NO_WORKER_S and answer.state == "PENDING":
            warned = True
            complain(f"no worker has taken the task from the queue {queue!r} yet: start celery -A tasks worker")


def _write(result: OnceResult, output: Path) -> None:
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(item, ensure_ascii=False)}\n" for item in result.kept)
    except OSError as error:
        raise TrawlError(f"cannot write {output}: {error.strerror}: name a file in a writable folder, with room") from error
    if len(result.kept) < result.items:
        complain(f"only the first {len(result.kept)} of {result.items} items came back; crawl without --worker to get all")


# what came of it


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    memory, stats = result.pop("peak_rss_bytes", 0), result.pop("stats", {})
    shown = {name: f"{n:,}" if isinstance(n, int) else str(n) for name, n in result.items() if n not in (None, "")}
    shown |= {"memory": f"{memory / 2**20:,.0f} MiB"} if memory else {}
    console().print(plain_table(("", ""), [*shown.items(), *((f"  {name}", str(n)) for name, n in stats.items())], header=False))
