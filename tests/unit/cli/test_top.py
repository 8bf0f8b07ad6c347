"""`trawl top`: its tables, and its keys by Textual's own pilot on a screen of 80x24."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from cli.views.top_tables import headline, tables
from forums.overview import Boards, Overview
from redis_components.errors import ConfigError
from tests.unit.monitoring.test_metrics import CRAWLER, VIEW

EVIL = "[red]no markup[/red]\x1b[2J"
BUSY = replace(VIEW, crawlers=(CRAWLER, replace(CRAWLER, number=1, pages_per_s=99.0, last_exit=EVIL)))


def test_every_table_has_a_cell_for_each_column_and_no_cell_acts_on_a_terminal() -> None:
    for name, table in tables(BUSY).items():
        for _, cells in table.rows:
            assert len(cells) == len(table.columns), name
            assert not any("\x1b" in cell.text or "\n" in cell.text for cell in cells)
    assert tables(Overview())["services"].rows == ()
    assert headline(replace(Overview(), failure="Redis is away"))[0] == "Redis is away"


def test_rows_are_filtered_by_a_word_and_sorted_with_what_is_unknown_last() -> None:
    crawlers = tables(BUSY)["crawlers"]
    speed, before = crawlers.columns.index("pages/s"), crawlers.columns.index("before")
    assert next(row[0] for row in crawlers.chosen("", speed, downwards=True)).endswith("/1")
    assert [row[0] for row in crawlers.chosen("NO MARKUP", None, downwards=False)] == [crawlers.rows[1][0]]
    assert crawlers.chosen("nowhere", speed, downwards=False) == []
    key, cells = crawlers.rows[0]
    unknown = (key, (*cells[:before], replace(cells[before], by=None)))
    both = replace(crawlers, rows=(unknown, crawlers.rows[1]))
    for downwards in (False, True):
        assert [row[0] for row in both.chosen("", before, downwards=downwards)][-1] == key


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from cli.commands.top import top

    monkeypatch.delitem(sys.modules, "cli.views.top_app", raising=False)
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setitem(sys.modules, "textual.app", None)
    with pytest.raises(ConfigError, match=r"trawl-fleet\[top\]"):
        top(2.0)


def played(look: Callable[[], Any], keys: Callable[[Any, Any], Any]) -> None:
    pytest.importorskip("textual", reason="the extra top is not installed")
    from cli.views.top_app import FleetTop

    async def play() -> None:
        app = FleetTop(look, 3600.0)
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await keys(app, pilot)

    asyncio.run(asyncio.wait_for(play(), 120))


def test_keys_change_screens_sort_filter_and_quit() -> None:
    async def keys(app: Any, pilot: Any) -> None:
        from textual.widgets import DataTable

        def names(screen: str) -> list[str]:
            table = app.query_one(f"#table-{screen}", DataTable)
            return [str(table.get_row_at(row)[0]) for row in range(table.row_count)]

        assert "pages a second" in names("overview")
        await pilot.press("3")
        assert names("crawlers") == [BUSY.crawlers[0].name, BUSY.crawlers[1].name]
        await pilot.press("s", "s", "s", "r")
        assert names("crawlers") == [BUSY.crawlers[1].name, BUSY.crawlers[0].name]
        await pilot.press("slash", *"markup", "enter")
        assert names("crawlers") == [BUSY.crawlers[1].name]
        row = app.query_one("#table-crawlers", DataTable).get_row_at(0)
        assert str(row[-1]) == "[red]no markup[/red]\\x1b[2J"
        await pilot.press("escape", "tab")
        assert len(names("crawlers")) == 2
        assert app.query_one("#screens").active == "sites"
        assert app.size.height == 24
        assert app.query_one("#table-sites").size.height >= 15, "most of a small screen is the table"
        await pilot.press("q")
        assert not app.is_running

    played(lambda: (BUSY, "redis://x/0"), keys)


def test_a_fleet_of_many_boards_shows_the_first_and_finds_the_others() -> None:
    watched = BUSY.sites.boards.watched[0]
    boards = [msgspec.structs.replace(watched, forum=f"f{number}") for number in range(1000)]
    many = replace(BUSY, sites=replace(BUSY.sites, boards=Boards(boards, BUSY.now)))

    async def keys(app: Any, pilot: Any) -> None:
        table = app.query_one("#table-sites")
        await pilot.press("4")
        assert table.row_count == 501
        assert str(table.get_row_at(500)[0]) == "and 500 more: / filters"
        await pilot.press("slash", *"f999", "enter")
        assert table.row_count == 1

    played(lambda: (many, "redis://x/0"), keys)


def test_a_redis_that_goes_away_is_said_and_what_was_read_stays() -> None:
    answers: list[Any] = ["Redis is away: [b]x[/b]", (BUSY, "redis://x/0")]

    async def keys(app: Any, pilot: Any) -> None:
        await pilot.press("2")
        assert app.query_one("#table-services").row_count == len(BUSY.services)
        app.read_fleet()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "Redis is away: [b]x[/b]" in str(app.query_one("#head").render())
        assert app.query_one("#table-services").row_count == len(BUSY.services)

    played(answers.pop, keys)
