"""An event as lines for people."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

from cli.views.output import PIPE_WIDTH
from redis_components.server.printable import in_one_line

if TYPE_CHECKING:
    from forums.storage.event_reader import Event

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
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"
