"""The screen of `trawl top`: an application of Textual, which is the extra `top`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static, TabbedContent, TabPane

from forums.overview import Overview
from redis_components.server.printable import in_one_line

from .output import iso
from .top_tables import Cell, Table, headline, tables

Look = Callable[[], tuple[Overview, str] | str]
"""The fleet and the name of its Redis, or one line that says why there is none."""

SCREENS = ("overview", "services", "crawlers", "sites", "problems")
MOST_ROWS = 500
"""Of a table, so that keys answer at once in a fleet of 10,000 boards; sorting and filtering look at all of them."""


class FleetTop(App[None]):
    """Reads the fleet in a thread of its application, every `every` seconds, and shows one table at a time."""

    CSS = """
    Screen { overflow: hidden; }
    TabbedContent { height: 1fr; }
    #head { height: 1; padding: 0 1; }
    #word { display: none; border: none; height: 1; padding: 0 1; }
    #word.asked { display: block; }
    TabPane { padding: 0; }
    DataTable { height: 1fr; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(number), f"show('{name}')", name, show=False) for number, name in enumerate(SCREENS, 1)),
        Binding("tab", "next_screen", "Screen", priority=True),
        Binding("s", "sort", "Sort"),
        Binding("r", "turn", "Reverse"),
        Binding("slash", "ask", "Filter", key_display="/"),
        Binding("escape", "forget", "All"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, look: Look, every: float) -> None:
        super().__init__()
        self._look = look
        self._every = every
        self._tables: dict[str, Table] = {}
        self._sorted: dict[str, tuple[int | None, bool]] = dict.fromkeys(SCREENS, (None, False))
        self._word = ""

    def compose(self) -> ComposeResult:
        """The parts of the screen, from top to bottom."""
        yield Static(id="head", markup=False)
        with TabbedContent(id="screens"):
            for number, name in enumerate(SCREENS, 1):
                with TabPane(f"{number} {name}", id=name):
                    yield DataTable(id=f"table-{name}", cursor_type="row", zebra_stripes=True)
        yield Input(id="word", placeholder="a word of the rows to show; Enter")
        yield Footer()

    def on_mount(self) -> None:
        """Read at once, then again and again."""
        self.query_one("#table-overview", DataTable).focus()
        self.read_fleet()
        self.set_interval(self._every, self.read_fleet)

    @work(thread=True, exclusive=True, group="look")
    def read_fleet(self) -> None:
        """Read, outside of the application's loop; a Redis that is slow must not stop the keys."""
        seen = self._look()
        self.call_from_thread(self._take, seen)

    def _take(self, seen: tuple[Overview, str] | str) -> None:
        head = self.query_one("#head", Static)
        if isinstance(seen, str):  # what is shown is old, and this says why
            head.update(Text(in_one_line(seen), style="bold red", no_wrap=True, overflow="ellipsis"))
            return
        view, name = seen
        said, style = headline(view)
        head.update(Text.assemble((said, style), f"  {iso(view.now)}  {name}", no_wrap=True, overflow="ellipsis"))
        if view.failure is None:
            self._tables = tables(view)
            self._fill(self._current)

    def _fill(self, screen: str) -> None:
        shown = self.query_one(f"#table-{screen}", DataTable)
        known = self._tables.get(screen)
        if known is None:
            return
        column, downwards = self._sorted[screen]
        at, scrolled = shown.cursor_row, shown.scroll_offset
        shown.clear(columns=True)
        for number, title in enumerate(known.columns):
            shown.add_column(f"{title} {'↓' if downwards else '↑'}" if number == column else title)
        rows = known.chosen(self._word, column, downwards=downwards)
        for _, cells in rows[:MOST_ROWS]:
            shown.add_row(*map(_as_text, cells))
        if len(rows) > MOST_ROWS:
            shown.add_row(Text(f"and {len(rows) - MOST_ROWS:,} more: / filters", style="dim"), *[""] * (len(known.columns) - 1))
        shown.move_cursor(row=min(at, max(0, shown.row_count - 1)))
        shown.scroll_to(scrolled.x, scrolled.y, animate=False)

    @property
    def _current(self) -> str:
        return self.query_one("#screens", TabbedContent).active or SCREENS[0]

    def action_show(self, screen: str) -> None:
        """Go to a screen."""
        self.query_one("#screens", TabbedContent).active = screen
        self._fill(screen)
        self.query_one(f"#table-{screen}", DataTable).focus()

    def on_tabbed_content_tab_activated(self, event: TabbedContent.TabActivated) -> None:
        """A tab was chosen with the mouse, or by us."""
        self._fill(event.pane.id or SCREENS[0])

    def action_next_screen(self) -> None:
        """Go to the next one."""
        self.action_show(SCREENS[(SCREENS.index(self._current) + 1) % len(SCREENS)])

    def action_sort(self) -> None:
        """Sort by the next column, after the last one as it was."""
        screen = self._current
        if screen in self._tables:
            column, _ = self._sorted[screen]
            following = 0 if column is None else column + 1
            self._sorted[screen] = (following, False) if following < len(self._tables[screen].columns) else (None, False)
            self._fill(screen)

    def action_turn(self) -> None:
        """Turn the order round."""
        column, downwards = self._sorted[self._current]
        self._sorted[self._current] = (column or 0, not downwards)
        self._fill(self._current)

    def action_ask(self) -> None:
        """Ask for a word."""
        asked = self.query_one("#word", Input)
        asked.add_class("asked")
        asked.focus()

    def action_forget(self) -> None:
        """Show all rows again."""
        self.query_one("#word", Input).value = ""
        self._choose("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The word is complete."""
        self._choose(event.value)

    def _choose(self, word: str) -> None:
        self._word = word.strip()
        asked = self.query_one("#word", Input)
        asked.set_class(bool(self._word), "asked")
        self.query_one(f"#table-{self._current}", DataTable).focus()
        self._fill(self._current)


def _as_text(cell: Cell) -> Text:
    is_number = isinstance(cell.by, int | float)
    return Text(cell.text, style=cell.style, justify="right" if is_number else "left", no_wrap=True)
