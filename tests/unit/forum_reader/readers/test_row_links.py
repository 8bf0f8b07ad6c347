"""`read_page`: the threads of a board and the boards of an index, next to menus and boxes that have more links than they have."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from forum_reader.page.records import PageKind, SeenPage
from forum_reader.readers.page_reader import read_page

URL = "https://forum.example/board"
NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
TITLES = (
    "Which filter for hard water?",
    "Tank overflows at night",
    "Winter is coming",
    "Two valves, unused",
    "Smell in the cellar",
)
MENU = "".join(f"<li><a href='/m/{n}'>Everything about pumps {n}</a></li>" for n in range(90))
BOX = "".join(
    f"<li class=w><a class=wt href=/t/{n}0>The newest thread of all is this {n}</a> <a href=/user/m{n}>m{n}</a> "
    f"<span class=wd>2026-11-0{n} 10:00</span></li>"
    for n in range(1, 9)
)


def seen(body: str, *, lang: str = "en") -> SeenPage:
    frame = f"<header><nav><ul>{MENU}</ul></nav></header><aside class=sidebar><ul>{BOX}</ul></aside>"
    return read_page(f"<html lang={lang}><title>Pumps</title><body>{frame}<div id=wrap>{body}</div></body></html>", URL, now=NOW)


def rows(row: str, titles: tuple[str, ...] = TITLES) -> str:
    return "".join(row.format(n=n, title=title) for n, title in enumerate(titles))


TITLE = "<a href=/t/{n}>{title}</a>"
BY = "<a href=/user/ann{n}>ann{n}</a>"
LAST = "<time datetime=2026-11-1{n}T10:00:00Z>yesterday</time>"
BOARDS = {
    "a date in one cell with the title": (
        f"<li class=row><dl><dt><a class=topictitle href=/t/{{n}}>{{title}}</a><br>by {BY} &raquo; 1{{n}}-11-2026 10:00</dt>"
        f"<dd>{{n}} <dfn>Replies</dfn></dd><dd class=last>by {BY} <a href=/p{{n}}#p><img alt=''></a> 1{{n}}-11-2026 11:00</dd>"
    ),
    "cells": f"<tr><td>{TITLE}<td>{BY}<td>{{n}}<td>{LAST}",
    "the last answer's title": f"<tr><td>{TITLE}<td>{BY}<td>{LAST}<br><a href=/t/{{n}}?r=9#m9>RE: {{title}}</a>",
    "a plain list": f"<li><a class=th href=/t/{{n}}>{{title}}</a> - <b>ann{{n}}</b>, {LAST}",
    "boxes that are called a text": f"<div class=post-content><h3>{TITLE}</h3>#{{n}} pump {BY} {LAST}</div>",
    "a date in the title's bubble": (
        f"<tr><td><a href=/t/{{n}} title='Started: Mar 1{{n}} 2025'>{{title}}</a> (<a href=/t/{{n}}?st=15>2</a>)<br>No idea."
        f"<td>{{n}}<td>{BY}<td>1{{n}}-November 26, 10:00 AM<br><a href=/t/{{n}}?view=last>Last post by:</a> {BY}"
    ),
    "a row that is a link": (
        f"<a href=/t/{{n}} class=block><div><p class=t>{{title}}</p><i>{{n}} replies</i></div><div>ann{{n}} {LAST}</div></a>"
    ),
    "numbers with their labels": (
        f"<div class=row><div class=i><h4>{TITLE}</h4><p>Started by {BY}</p></div>"
        f"<div class=latest><p class=stats>{{n}}1 Replies<br>{{n}}974 Views</p><p>{LAST} by {BY}</p></div></div>"
    ),
}


@pytest.mark.parametrize("row", BOARDS.values(), ids=BOARDS)
def test_threads_are_what_a_board_lists(row: str) -> None:
    tag = {"<tr>": "table", "<li>": "ul"}.get(row[:4], "div")
    page = seen(f"<h1>Pumps</h1><{tag} class=content-list>{rows(row)}</{tag}>")
    assert page.kind is PageKind.LIST
    assert [(one.url, one.title) for one in page.rows] == [
        (f"https://forum.example/t/{n}", title) for n, title in enumerate(TITLES)
    ]


INDEXES = {
    "columns": (
        "<table><tr><th>Board<th>Topics<th>Posts{}</table>",
        f"<tr><td><a href=/x/b{{n}}>{{title}}</a><p>All there is to it</p><td>{{n}}1<td>{{n}}02<td>By {BY} {LAST}",
    ),
    "labels": (
        "<div>{}</div>",
        "<div class=tile><a href=/x/b{n}><h2>{title}</h2></a><p><b>{n}1</b> Themen</p>"
        "Zuletzt: <a href=/x/b{n}/t1>Frost {n}</a></div>",
    ),
    "names that look like authors": (
        "<table><tr><th>Catégorie<th>Sujets<th>Messages<th>Dernier{}</table>",
        f"<tr><td><b><a href=/x/b{{n}}>{{title}}</a></b><br>All there is to it<td>{{n}}1<td>{{n}}02<td>{LAST} <b>ann{{n}}</b>",
    ),
    "labels in a line": (
        "<div>{}</div>",
        "<div class=c><h5><a href=/x/b{n}>{title}</a></h5><p>All there is to it</p>{n}1 threads · {n}02 posts</div>",
    ),
    "the last thread": (
        "<ul>{}</ul>",
        f"<li><div><h3><a href=/x/b{{n}}>{{title}}</a></h3></div><div class=la><p>{{n}}02 Posts<br>{{n}}1 Topics</p>"
        f"<p>Last post: {LAST}<br><a href=/t/{{n}}>Frozen pipes, once more {{n}}</a> by {BY}</p></div>",
    ),
}


@pytest.mark.parametrize("names", [("Pumps", "Filters", "Sad"), ("Pumps", "Filters", "Garden", "Sad", "Market", "Other")])
@pytest.mark.parametrize(("frame", "row"), INDEXES.values(), ids=INDEXES)
def test_boards_are_what_an_index_lists(frame: str, row: str, names: tuple[str, ...]) -> None:
    page = seen("<h1>Boards</h1>" + frame.format(rows(row, names)))
    assert page.kind is PageKind.INDEX
    assert [one.url for one in page.rows] == [f"https://forum.example/x/b{n}" for n in range(len(names))]


def test_the_foot_of_a_page_is_no_part_of_an_index() -> None:
    boards = rows(
        "<li><a href=/x/b{n}>{title}</a> ({n}1/{n}02) - All there is to it</li>", ("Pumps", "Filters", "Garden", "Sad", "Market")
    )
    foot = "".join(f"<li><a href=/f/{n}>About us, part {n}</a></li>" for n in range(20))
    page = seen(f"<h1>Boards</h1><ul>{boards}</ul><footer><ul>{foot}</ul></footer>")
    assert [one.url for one in page.rows] == [f"https://forum.example/x/b{n}" for n in range(5)]


def test_a_menu_alone_lists_nothing() -> None:
    page = read_page(f"<html><body><nav><ul>{MENU}</ul></nav><p>Please sign in.</p></body></html>", URL, now=NOW)
    assert (page.kind, page.rows) == (PageKind.OTHER, ())


@pytest.mark.parametrize("prefix", ["https://www.forum.example", "//forum.example:443", "HTTPS://FORUM.example:443"])
def test_rows_may_name_the_host_of_their_page_otherwise(prefix: str) -> None:
    page = seen(f"<table>{rows(BOARDS['cells']).replace('href=/t/', f'href={prefix}/t/')}</table>")
    assert page.kind is PageKind.LIST
    assert [one.title for one in page.rows] == list(TITLES)


def test_rows_of_a_page_from_the_archive_lead_to_the_site() -> None:
    old = "href=https://web.archive.org/web/20051224101428/https://forum.example"
    page = seen(f"<table>{rows(BOARDS['cells']).replace('href=', old)}</table>")
    assert page.kind is PageKind.LIST
    assert [one.url for one in page.rows] == [f"https://forum.example/t/{n}" for n in range(len(TITLES))]


@pytest.mark.parametrize(
    "href", ["/list.php?{n}7", "/default.aspx?g=topics&f={n}7", "/index.php?/forum/{n}7-board/", "/forums/b.{n}7/"]
)
def test_many_addresses_of_forums_are_an_index_though_no_label_says_it(href: str) -> None:
    row = f"<tr><td><a href={href}>{{title}}</a><p>All there is to it</p><td>{{n}}02<td>{LAST}"
    names = tuple(f"Pumps and hoses {n}" for n in range(12))
    page = seen(f"<table>{rows(row, names)}</table>")
    assert (page.kind, len(page.rows)) == (PageKind.INDEX, 12)


@pytest.mark.parametrize("head", ["主题", "Тема", "スレッド"])
def test_a_column_of_titles_is_called_as_one_thread_is(head: str) -> None:
    row = f"<tr><td>{{n}}<td>{TITLE}<td>{BY}<td>2026-11-1{{n}}"
    page = seen(f"<table><tr><th>No.<th>{head}<th>@<th>!</tr>{rows(row)}</table>", lang="zh")
    assert page.kind is PageKind.LIST
    assert [one.title for one in page.rows] == list(TITLES)


def test_titles_of_answers_in_a_tree_are_no_threads() -> None:
    answer = f"<ul><li><a href=/m/{{n}}7>Re: {{title}}</a> - <b>bob</b>, {LAST}</li></ul>"
    tree = rows(f"<ul class=thread><li>{TITLE} - <b>ann{{n}}</b>, {LAST}{answer}</li></ul>")
    page = seen(tree)
    assert page.kind is PageKind.LIST
    assert [one.title for one in page.rows] == list(TITLES)
