"""What `trawl up` shows: one screen that stays on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from fleet_operations.overview import Overview, calm, problems
from redis_components.errors import TrawlError

from .tables import LEAST_BELOW

LABEL = 9  # cells of a label with its space
LOOK_S = 2.0  # between two readings of the fleet
MOST_PROBLEMS = 3
_COLOURS = {"trawl": "bold", "worker": "cyan", "beat": "magenta", "flower": "yellow", "exporter": "green"}
# Successful tasks that beat starts every few seconds.
_ROUTINE = re.compile(
    # also "Discarding revoked task": on a busy machine one that expired before its turn; the next one does its work
    r"([Tt]ask:?) trawl\.(store_items|consume_items|reconcile_fleet|seed_forums"
    r"|recheck_threads|probe_sites|publish_events|notify_alarms|sample_fleet|prune_raw_pages)"
    r"\[[\w-]+\]( received| succeeded|$)"
    r"|Inspect method \w+ failed"  # Flower asks before the worker answers, and again soon
)

_EVENT = re.compile(r"(?![\[ ])[^|]{1,500} \| ")  # of an alert to stdout (`forums/events/messages.py`)

Rows = Sequence[tuple[str, str]]
"""Labels and texts."""


class UpLog:
    """One log of all processes, each line with the name of its process before it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()

    def line(self, name: str, text: str) -> None:
        """Print a line of this process. On a terminal it continues below its first word."""
        if _ROUTINE.search(text):
            return
        head = f"{name:<8} │ "
        with self._lock:
            for row in _wrapped(self._console, text, len(head)) if self._console.is_terminal else [Text(text)]:
                self._console.print(Text.assemble((head, _COLOURS.get(name, "")), row), soft_wrap=True)
                head = " " * 8 + " │ "

    @contextmanager
    def running(self, rows: Rows, look: Callable[[], Overview]) -> Iterator[None]:  # noqa: ARG002 - as UpScreen has it
        """Print the addresses, then the lines as they come."""
        for label, text in rows:
            self.line("trawl", f"{label:<{LABEL}} {text}")
        yield


class UpScreen:
    """Addresses, figures, what needs attention, and the last event, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._rows: Rows = ()
        self._view: Overview | None = None
        self._last = ""
        self._is_live = False

    def line(self, name: str, text: str) -> None:
        """Keep an event of the fleet for the screen; print it where there is none. Of other lines print those of alerts, above
        the screen: the others are for `--logs`.
        """
        if name == "trawl":
            self._last = f"{datetime.now(UTC):%H:%M:%SZ} {text}"
            if not self._is_live:
                self._console.print(Text(text), soft_wrap=True)
        elif name in ("worker", "exporter") and _EVENT.match(text):
            self._console.print(Text(text))

    @contextmanager
    def running(self, rows: Rows, look: Callable[[], Overview]) -> Iterator[None]:
        """Show the screen, with the fleet as `look` reads it."""
        self._rows, self._is_live = rows, True
        ended = threading.Event()
        reader = threading.Thread(target=self._read, args=(look, ended), name="figures", daemon=True)
        reader.start()
        try:
            with Live(self, console=self._console, refresh_per_second=1, redirect_stdout=False, redirect_stderr=False):
                yield
        finally:
            self._is_live = False
            ended.set()

    def _read(self, look: Callable[[], Overview], ended: threading.Event) -> None:
        while not ended.wait(LOOK_S):
            with suppress(TrawlError, OSError):
                self._view = look()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [*self._rows, *self._of_fleet()]
        if self._last:
            rows.append(("last", self._last))
        for label, text in rows:
            head = Text(f"{label:<{LABEL}}", style="bold")
            for row in _wrapped(console, text, LABEL, options.max_width):
                yield head.append_text(row)
                head = Text(" " * LABEL)
        yield Text("\nCtrl-C stops everything. In another terminal: trawl status, trawl logs -f", style="dim")

    def _of_fleet(self) -> Iterator[tuple[str, str]]:
        if (view := self._view) is None:
            yield "", ""
            yield "fleet", "starting ..."
            return
        services = view.known
        alive, wanted = sum(one.alive for one in services), sum(view.wanted(one) for one in view.services)
        waiting = sum(one.crawl.start_tasks + one.crawl.ready for one in services)
        pages, to_store = sum(one.pages_per_s for one in services), sum(one.items_waiting for one in services)
        yield "", ""
        yield (
            "fleet",
            f"{alive} of {wanted} crawlers, {pages:,.1f} pages/s, {waiting:,} requests wait, {to_store:,} items to store",
        )
        found = problems(view)
        if not found:
            yield "state", calm(view)
        for one in found[:MOST_PROBLEMS]:
            yield ("problem" if one.grave else "note"), one.what + (f" → {one.fix}" if one.fix else "")
        if len(found) > MOST_PROBLEMS:
            yield "", f"and {len(found) - MOST_PROBLEMS:,} more: trawl status"


def _wrapped(console: Console, text: str, indent: int, width: int = 0) -> Sequence[Text]:
    """Return the text in lines that break between words; a longer word than a line is broken."""
    return [*Text(text).wrap(console, max(LEAST_BELOW, (width or console.width) - indent), overflow="fold")] or [Text("")]
