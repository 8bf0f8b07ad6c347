"""The tables of `jobs`, `services`, `audit`, `items` and others at each width: a figure is never cut, and no text is lost.

`UPDATE_SCREENS=1 pytest tests/unit/cli/test_plain_table.py` writes what is approved again.
"""

from __future__ import annotations

import os
import re
from operator import itemgetter

import pytest

from cli.views.tables import FittedTable, table_of

from .test_widths import SCREENS, WIDTHS, drawn

TIME = "2026-11-24T04:29:15Z"
TABLES = {
    "jobs": (
        ("JOB", "STATE", "PAGES", "ITEMS", "ERRORS", "STARTED", "TOOK"),
        ("books.3fa2c1d0", "running", "1,234,567", "2,345,678", "12", "2026-11-24T04:29", "12 min"),
        ("shop_books.4711abcd", "finished", "9", "8", "0", "2026-11-24T04:30", "0.4 s"),
    ),
    "services": (
        ("SERVICE", "SIZE", "SPIDER", "PROJECT", "CONSUMER", "DECLARED IN"),
        ("forum_detail", "2", "forum_detail", "-", "forum_writer", "TRAWL_FLEET"),
        ("books", "12", "shop_books", "shop.settings", "jsonl:data/books.jsonl", "services.toml of /srv/shop"),
    ),
    "audit": (
        ("when", "who", "from", "what", "outcome"),
        (TIME, "anna@crawl-1", "cli", "trawl limit forum.example.org --rate 2 --per-day 5000 --quiet 22-06", "done"),
        (TIME, "http-api", "203.0.113.17", "pause books", "refused: there is no service books; did you mean book?"),
    ),
    "items": (
        ("SERVICE", "WAIT", "PER S", "REFUSED", "CONSUMER", "OLDEST"),
        ("forum_detail", "1,234,567", "+12,345", "2,222", "at work", "2026-11-24T04:29:15Z"),
    ),
    "lanes": (
        ("site", "state", "rate now", "waiting", "next in", "why"),
        ("forum.example.org", "slowed", "0.25/s", "1,234", "12 s", "429 by 3 of the last 100 answers, Retry-After: 30"),
        ("论坛.example", "free", "", "0", "", ""),
    ),
    "settings": (
        ("variable", "value", "origin"),
        ("TRAWL_DATABASE_URL", "postgresql+psycopg://trawl:***@database.example.org/trawl", "environment"),
        ("TRAWL_FLEET", "forum_list=1,forum_detail=2", ".env"),
    ),
}


def table(name: str) -> FittedTable:
    headings, *rows = TABLES[name]
    return table_of(rows, {name: itemgetter(at) for at, name in enumerate(headings)})


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_it_was_last_approved(name: str, width: int) -> None:
    text, file = drawn(table(name), width), SCREENS / f"{name}-{width}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        file.write_text(text)
    assert text == file.read_text()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", TABLES)
def test_nothing_is_cut_and_no_text_leaves(name: str, width: int) -> None:
    shown = drawn(table(name), width)
    assert "…" not in shown
    assert all(len(line) <= width for line in shown.splitlines())
    words = {word for row in TABLES[name][1:] for cell in row if len(cell) > 24 for word in cell.split() if len(word) < 20}
    assert {word for word in words if word not in shown} == set()
    figures = {cell for row in TABLES[name][1:] for cell in row if re.fullmatch(r"[\d,]{5,}", cell)}
    cut = {cell[:-1] for cell in figures if cell not in shown}
    assert {piece for piece in cut if piece in shown} == set(), "it is shown whole, or not at all"


def test_a_table_without_rows_can_be_printed() -> None:
    assert drawn(table_of([], {"site": "site", "state": "state"}), 80) == "site  state\n"


def test_text_of_others_is_no_markup() -> None:
    one = table_of([("[red]example", "[bold]\x1b[31m")], {"site": itemgetter(0), "why": itemgetter(1)})
    assert "[red]example  [bold]\\x1b[31m" in drawn(one, 80)
