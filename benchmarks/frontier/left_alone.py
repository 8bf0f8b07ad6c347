"""Requests of eight crawlers to a site that asks for a pause, by the log of the site.

    python -m benchmarks.frontier.left_alone [--only seconds date ramp quiet] [--crawlers 8]

`seconds` and `date`: the crawlers know no limit and send two requests each at a time; one page is answered by 429 with
`Retry-After: 5`, or with the date of then. Counted from when that answer was sent. `ramp`: a site that can answer 20 requests a
second refuses all beyond by 503 without a time; what it was sent in each 5 s. `quiet`: a whole minute is a quiet hour. The site
notes when the kernel received each request.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

from benchmarks.frontier.refusals import CAPACITY, crawling
from benchmarks.support.report import Report, options
from redis_components.politeness import limits
from redis_components.politeness.limits import LaneLimits
from tests.support.redis_server import RedisServer
from tests.support.watched_site import Page

WAIT_S = 5
RAMP_S, STEP_S = 120, 5
HEARD_S = 0.5
"""So long after the answer requests may come that were sent before every crawler had heard of it."""


def leaves_alone(folder: Path, crawlers: int, form: str) -> list[object]:
    """Return one row: requests after a 429 with a time."""
    refused: list[bool] = []
    with crawling(folder, crawlers=crawlers, pages=4000, limited=None, at_once=2) as (_, site, _, _):

        def answer(_: str) -> Page:
            if refused or len(site.times) < 300:
                return Page("a page")
            refused.append(True)
            at = time.time() + site.latency_s
            after = str(WAIT_S) if form == "seconds" else formatdate(int(at + WAIT_S) + 1, usegmt=True)
            return Page("too many", 429, {"Retry-After": after, "Date": formatdate(at, usegmt=True)})

        site.answer = answer
        until = time.monotonic() + 60
        while time.monotonic() < until and not [at for at, status in site.answered if status == 429]:
            time.sleep(0.1)
        time.sleep(WAIT_S + 5)
        refused_at = next(at for at, status in site.answered if status == 429)
        since = sorted(at - refused_at for at in site.times)
    before = [at for at in since if at < 0]
    in_flight = [at for at in since if 0 <= at < WAIT_S]
    after = [at for at in since if at >= WAIT_S]
    late = sum(at > HEARD_S for at in in_flight)
    rate = sum(at > -1 for at in before)
    return [f"429, `Retry-After` as {form}", rate, len(in_flight), max(in_flight, default=0.0), late, min(after, default=-1.0)]


def ramps(folder: Path, crawlers: int) -> list[int]:
    """Return the requests in each step."""
    with crawling(folder, crawlers=crawlers, pages=30_000, limited=None) as (_, site, _, log):

        def answer(_: str) -> Page:
            with log.lock:
                good = log.has_room()
            return Page("a page") if good else Page("busy", 503)

        begun, site.answer = time.monotonic(), answer
        time.sleep(RAMP_S)
        counts = [0] * (RAMP_S // STEP_S)
        for at in site.times:
            if 0 <= at - begun < RAMP_S:
                counts[int((at - begun) // STEP_S)] += 1
    return counts


def is_quiet(folder: Path, crawlers: int) -> list[object]:
    """One row: what came before, in and after a quiet minute."""
    with crawling(folder, crawlers=crawlers, pages=30_000, limited=LaneLimits(rate=20, concurrency=6)) as (
        crawl,
        site,
        server,
        _,
    ):
        first = int((time.time() + 15) // 60) + 1
        hours = ((first % 1440, (first + 1) % 1440),)
        lane = site.url.removeprefix("http://")
        limits.change(server.client(), crawl.keys.limits, lane, LaneLimits(rate=20, concurrency=6, quiet=hours))
        time.sleep((first + 1) * 60 + 10 - time.time())
        begins = time.monotonic() - (time.time() - first * 60)
        since = sorted(at - begins for at in site.times)
    before, inside = [at for at in since if at < 0], [at for at in since if 0 <= at < 60]
    return ["a quiet minute", len(before), max(before), len(inside), len(since) - len(before) - len(inside)]


def plotted(counts: list[int]) -> str:
    """Bars of requests a second."""
    lines = [f"{place * STEP_S:4} s {count / STEP_S:5.1f}/s {'#' * round(count / STEP_S)}" for place, count in enumerate(counts)]
    return "```text\n" + "\n".join(lines) + "\n```"


def main() -> None:
    """Run the chosen cases and print the report."""
    parser = options(__doc__)
    scenarios = ["seconds", "date", "ramp", "quiet"]
    parser.add_argument("--only", nargs="*", choices=scenarios, default=scenarios)
    parser.add_argument("--crawlers", type=int, default=8, help="processes (default: %(default)s)")
    chosen = parser.parse_args()
    report = Report(title="Left alone", method=" ".join((__doc__ or "").split("\n\n", 2)[2].split()))
    with RedisServer() as server:
        report.served_by(server.client())

    def run(body: Callable[[Path], list[Any]]) -> list[Any]:
        with tempfile.TemporaryDirectory(prefix="trawl-alone-") as folder:
            row = body(Path(folder))
        print(json.dumps(row), file=sys.stderr, flush=True)
        return row

    if rows := [
        run(lambda folder, form=form: leaves_alone(folder, chosen.crawlers, form))
        for form in ("seconds", "date")
        if form in chosen.only
    ]:
        head = ["", "in the second before", "after the answer", "the last, s", f"later than {HEARD_S:g} s", "the next, s"]
        report.table(head, rows)
        report.target("nothing but what was in flight", all(row[4] == 0 for row in rows))
    if "ramp" in chosen.only:
        counts = run(lambda folder: ramps(folder, chosen.crawlers))
        report.tables.append(f"A site that can answer {CAPACITY:g} a second:\n\n{plotted(counts)}")
    if "quiet" in chosen.only:
        row = run(lambda folder: is_quiet(folder, chosen.crawlers))
        report.table(["", "before", "the last, s", "in it", "after it"], [row])
        report.target("nothing in a quiet minute", row[3] == 0)
    report.finish(chosen)


if __name__ == "__main__":
    main()
