"""What `trawl top` shows, as tables of an overview. Pure; every cell is one line that cannot act on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forums.overview import Overview, ServiceView, problems
from forums.overview.model import shown_state
from redis_components.server.printable import in_one_line

from .output import duration

Value = str | int | float | None


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A text, what it is sorted by, and its colour."""

    text: str
    by: Value
    style: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns, and a key and cells for each row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    def chosen(self, word: str, column: int | None, *, downwards: bool) -> list[tuple[str, tuple[Cell, ...]]]:
        """The rows that hold `word` somewhere, sorted by a column (None: as they are); cells without a value come last."""
        found = [row for row in self.rows if word.casefold() in " ".join(cell.text for cell in row[1]).casefold()]
        if column is None:
            return found
        known = [row for row in found if row[1][column].by is not None]
        known.sort(key=lambda row: _order(row[1][column].by), reverse=downwards)
        return known + [row for row in found if row[1][column].by is None]


def tables(view: Overview) -> dict[str, Table]:
    """By name, in the order of the screens."""
    return {
        "overview": _overview(view),
        "services": _services(view),
        "crawlers": _crawlers(view),
        "sites": _sites(view),
        "problems": _problems(view),
    }


def headline(view: Overview) -> tuple[str, str]:
    """One line about the whole fleet, and its colour."""
    if view.failure is not None:
        return in_one_line(view.failure), "bold red"
    found = problems(view)
    grave = sum(one.grave for one in found)
    if grave:
        return f"{grave:,} to mend, {len(found) - grave:,} notes (5: problems)", "bold red"
    return (f"works, {len(found):,} notes (5: problems)", "yellow") if found else ("all is well", "green")


def _overview(view: Overview) -> Table:
    services, boards = view.services, view.sites.boards
    figures: tuple[tuple[str, int | float, bool], ...] = (
        ("pages a second", round(sum(one.pages_per_s for one in services), 1), False),
        ("crawlers alive", sum(one.alive for one in services), False),
        ("crawlers desired", sum(view.wanted(one) for one in services), False),
        ("start tasks", sum(one.crawl.start_tasks for one in services), False),
        ("requests waiting", sum(one.crawl.ready for one in services), False),
        ("in work", sum(one.crawl.leased for one in services), False),
        ("set aside (paused)", sum(one.crawl.parked for one in services), False),
        ("items waiting", sum(one.items_waiting for one in services), False),
        ("items refused", sum(one.items_refused for one in services), True),
        ("dead letters", sum(one.crawl.dead for one in services), True),
        ("nodes alive", sum(one.alive(view.now) for one in view.nodes), False),
        ("boards", len(boards), False),
        ("boards stale", len(view.sites.stale), True),
        ("sites broken", len(view.sites.breakers), True),
        ("held", len([one for one in view.held if not one.by_breaker]), False),
    )
    return _table(("what", "now"), ((what, (_text(what), _number(value, alarm=alarm))) for what, value, alarm in figures))


def _services(view: Overview) -> Table:
    columns = ("service", "crawlers", "pages/s", "tasks", "waiting", "in work", "dead", "items", "pages", "state")
    return _table(columns, ((one.name, _service(one)) for one in view.services))


def _service(one: ServiceView) -> tuple[Cell, ...]:
    desired = "-" if one.desired is None else str(one.desired)
    return (
        _text(one.name, "bold"),
        Cell(text=f"{one.alive}/{desired}", by=one.alive, style="bold red" if one.is_short else "green"),
        _number(one.pages_per_s),
        *(_number(value) for value in (one.crawl.start_tasks, one.crawl.ready, one.crawl.leased)),
        _number(one.crawl.dead, alarm=True),
        *(_number(value) for value in (one.items_waiting, one.pages)),
        _text(one.fault or one.state),
    )


def _crawlers(view: Overview) -> Table:
    return _table(
        ("crawler", "state", "pages/s", "MiB", "pages", "restarts", "heard", "node", "before"),
        (
            (
                one.name,
                (
                    _text(one.name, "bold"),
                    _text(shown_state(one, view.now), "" if one.alive(view.now) else "bold red"),
                    _number(one.pages_per_s),
                    _number(one.rss_bytes >> 20),
                    _number(one.pages),
                    _number(one.restarts),
                    _age(view.now - one.beat_at),
                    _text(one.node),
                    _text(one.error or one.note or one.last_exit or ""),
                ),
            )
            for one in view.crawlers
        ),
    )


def _sites(view: Overview) -> Table:
    return _table(
        ("board", "state", "last scan", "due", "newest", "why"),
        (
            (
                one.name,
                (
                    _text(one.name, "bold"),
                    _text(one.word, "bold red" if one.is_stale else ""),
                    _age(None if one.state.scanned_at is None else view.now - one.state.scanned_at),
                    _late(one.watched.due_at - view.now),
                    _age(None if one.state.newest_at is None else view.now - one.state.newest_at),
                    _text(one.why),
                ),
            )
            for one in view.sites.boards
        ),
    )


def _problems(view: Overview) -> Table:
    rows = []
    for number, one in enumerate(problems(view)):
        mark, style = ("✗", "bold red") if one.grave else ("!", "yellow")
        rows.append((str(number), (Cell(text=mark, by=int(not one.grave), style=style), _text(one.what), _text(one.fix))))
    return _table(("", "what", "next step"), rows)


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, tuple[Cell, ...]]]) -> Table:
    return Table(columns=columns, rows=tuple(rows))


def _text(text: str, style: str = "") -> Cell:
    shown = in_one_line(str(text))
    return Cell(text=shown, by=shown or None, style=style)


def _number(value: float, *, alarm: bool = False) -> Cell:
    return Cell(text=f"{value:,}", by=value, style="bold red" if alarm and value else "dim" if not value else "")


def _age(seconds: float | None) -> Cell:
    return Cell(text="", by=None) if seconds is None else Cell(text=duration(max(0.0, seconds)), by=seconds)


def _late(seconds: float) -> Cell:
    return Cell(text=f"in {duration(seconds)}" if seconds > 0 else f"{duration(-seconds)} late", by=seconds)


def _order(value: Value) -> tuple[bool, float, str]:
    return (False, float(value), "") if isinstance(value, int | float) else (True, 0.0, str(value).casefold())
