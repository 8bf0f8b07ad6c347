"""Progress of long commands, on standard error of a terminal; none in a pipe, in a log and for `--json`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

Report = Callable[..., None]
"""`report(done, total=None, what=None)`: with a total a bar and the time that is left, without one the count."""

BEFORE_S = 1.0  # a command that ends sooner shows nothing
EACH_S = 0.2  # a terminal is written to at most so often


@contextmanager
def progress_bar(what: str, unit: str = "", *, shown: bool = True) -> Iterator[Report]:
    """Yield `report`, which costs next to nothing between two refreshes. The bar is wiped at the end, also after an error."""
    if not shown or not sys.stderr.isatty():
        yield lambda *_, **__: None
        return
    bar = _Bar(what, unit)
    try:
        yield bar.report
    finally:
        bar.close()


class _Bar:
    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._progress: Progress | None = None
        self._drawn_at = time.monotonic() + BEFORE_S - EACH_S

    def report(self, done: int, total: int | None = None, what: str | None = None) -> None:
        now = time.monotonic()
        if now - self._drawn_at < EACH_S:
            return
        self._drawn_at = now
        if self._progress is None:
            self._progress = _drawn()
            self._progress.add_task(self._what, unit=self._unit, total=None)
            self._progress.start()
        task = self._progress.task_ids[0]
        self._progress.update(task, completed=done, total=total, description=what or self._what)
        self._progress.refresh()

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()


def _drawn() -> Progress:
    """Return a bar without a thread: `report` draws, so nothing is written while the command asks or fails."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    from cli.views.tables import console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console(stderr=True), auto_refresh=False, transient=True)


@contextmanager
def working(what: str, *, shown: bool = True) -> Iterator[None]:
    """Show that a step of unknown length is running. `what`: as in `reading queues and database`."""
    if not shown or not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    from cli.views.tables import console

    with console(stderr=True).status(Text(what)):  # an address may have brackets, which is not markup
        yield
