"""What was given up, for people."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from redis_components.admin.dead_letters import DeadEntry
from redis_components.items.refused import RefusedItem
from redis_components.server.printable import in_one_line

from .columns import Column, FittedTable
from .output import PIPE_WIDTH, duration

if TYPE_CHECKING:
    from forums.storage.read.event_reader import Event  # loads SQLAlchemy


def dead_table(entries: Iterable[tuple[str, DeadEntry]], now: float) -> FittedTable:
    """Requests and start tasks of these spiders; `now` is Redis's time."""
    columns = (
        Column(name="spider"),
        Column(name="kind", rank=2),
        Column(name="age", right=True),
        Column(name="url", least=30, rank=3, below=True),
        Column(name="reason", least=25, rank=4, below=True),
    )
    return FittedTable(
        columns,
        [
            (spider, entry.kind.name.lower().replace("_", " "), duration(now - entry.at_s), entry.url, entry.reason)
            for spider, entry in entries
        ],
    )


def refused_table(entries: Iterable[tuple[str, RefusedItem]], now: float) -> FittedTable:
    """Items that their consumer refused; `now` is Redis's time."""
    columns = (
        Column(name="spider"),
        Column(name="age", right=True),
        Column(name="reason", least=25, rank=2, below=True),
        Column(name="item", least=30, rank=3, below=True),
    )
    return FittedTable(columns, [(spider, duration(now - one.at_s), one.reason, one.shown) for spider, one in entries])


_NARROWEST = 20


def line(event: Event) -> str:
    """One line that fits the terminal: when, what, where, by whom, and the beginning of the text; below it the address."""
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else PIPE_WIDTH
    at = event.stored_at.astimezone().strftime("%H:%M:%S")
    what = f"{event.type}{'?' if event.undecided else ''} {event.row}"
    if event.row not in ("post", "comment"):
        about = f"{at}  {what:<16}  {one_line(event.site)}  {one_line(event.text or '')}" if event.site else None
        return cut(about or f"{at}  {what:<16}  {one_line(event.text or '')}", width)
    where = f"{event.site}/{event.forum}" if event.forum else event.site
    head = f"{at}  {what:<16}  {one_line(where)}  {one_line(event.author or '-')}"
    title, text = one_line(event.title or ""), one_line(event.text or "")
    rest = f"{title}: {text}" if title and text else title or text
    first = cut(f"{cut(head, max(_NARROWEST, width // 2))}  {rest}", width)
    return f"{first}\n  {cut(one_line(event.url), width - 2)}" if event.url else first


def one_line(text: str) -> str:
    """Without line breaks, and without characters that act on a terminal."""
    return in_one_line(" ".join(text.split()))


def cut(text: str, width: int) -> str:
    """As much as fits into `width` columns; a Chinese character takes two."""
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
