"""rich's Console for text of others: no markup, no emoji codes, and no character that acts on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from redis_components.server.printable import printable


class SafeConsole(Console):
    """Colours come from styles alone. `render` is the one way of all text to the terminal; rich's own control codes pass it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A cell of a table: escaped before it is measured, so that columns stay straight. Never markup."""
        return super().render_str(printable(text), **{**options, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Segments whose text is printable."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text, style, control) if control else Segment(printable(text), _without_links(style))


def _without_links(style: Style | None) -> Style | None:
    return style.update_link(None) if style and style.link else style
