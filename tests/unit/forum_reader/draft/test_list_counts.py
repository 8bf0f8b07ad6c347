"""Numbers of replies that stand in a line with other numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scrapy.http import HtmlResponse

from forum_reader.definition.selectors import compiled
from forum_reader.draft.address_shape import shape_of
from forum_reader.draft.link_groups import link_groups
from forum_reader.draft.list_wrapper import learn_list
from forum_reader.draft.page_sample import OpenedPage, opened
from forum_reader.reading.found_values import matched_part, whole_number

URL = "https://forum.example/board/7"


def learned_list(rows: str, threads: Sequence[OpenedPage] = ()) -> tuple[OpenedPage, dict[str, Any]]:
    page = opened(HtmlResponse(URL, body=f"<title>Yard</title><table>{rows}</table>".encode(), encoding="utf-8"))
    assert page is not None
    group = link_groups(page)[0]
    shape = shape_of(group.urls)
    assert shape is not None
    learned = learn_list(group, shape, threads)
    assert learned is not None
    return page, learned


@pytest.mark.thorough
@pytest.mark.parametrize(
    "line",
    [
        "Started by: ida | Views: {views} | Replies: {replies} | Last: 2026-11-{day:02} 10:15 by walter",
        "{views} views, {replies} replies, last on 2026-11-{day:02} 10:15 by walter",
        "Aufrufe：{views} Antworten：{replies} · 2026-11-{day:02} 10:15 · walter",
    ],
)
def test_a_count_is_told_by_the_word_before_or_behind_it(line: str) -> None:
    rows = "".join(
        f'<tr class="row"><td><h2><a href="/topic/{700 + n}">Radio number {n} hums</a></h2>'
        f"<small>{line.format(views=340 + n, replies=2 * n + 1, day=21 - n)}</small></td></tr>"
        for n in range(12)
    )
    page, learned = learned_list(rows)
    field = learned["fields"]["reply_count"]
    found = [compiled("html", field["select"])(row)[0] for row in compiled("html", learned["rows"])(page.root)]
    counts = [whole_number(matched_part(field["regex"], "".join(one.itertext()))) for one in found]
    assert counts == [2 * n + 1 for n in range(12)]


@pytest.mark.parametrize(
    ("first", "last", "none", "selectors"),
    [
        ("<td><i>{}</i></td>", "<td><b>{}</b></td>", "<td></td>", ("./td[2]/i[1]", "./td[3]/b[1]")),
        ("<td class=opened>{}</td>", "<td class=answered>{}</td>", "<td class=answered>-</td>", ("td.opened", "td.answered")),
    ],
)
def test_the_date_of_the_last_reply_is_told_by_threads_that_have_one(
    first: str, last: str, none: str, selectors: tuple[str, str]
) -> None:
    rows = "".join(
        f'<tr class="row"><td><a href="/topic/{700 + day}">Radio number {day} hums</a></td>'
        + first.format(f"2026-11-{day:02} 10:15")
        + (last.format(f"2026-11-{day:02} 11:15") if day < 7 else none)
        for day in range(8, 0, -1)
    )
    _, learned = learned_list(rows)
    assert (learned["fields"]["created_at"], learned["fields"]["last_activity"]) == selectors


@pytest.mark.parametrize(
    ("date", "token"),
    [
        ("<td class=at>{} days ago</td>", "td.at"),
        ("<td class=at><time datetime=2026-10-{:02}T10:15Z>{} days ago</time></td>", None),
    ],
)
def test_a_thread_has_changed_where_how_long_ago_it_was_is_another_text(date: str, token: str | None) -> None:
    rows = "".join(
        f'<tr class="row"><td><a href="/topic/{700 + n}">Radio number {n} hums</a></td>{date.format(n + 2, n + 2)}</tr>'
        for n in range(8)
    )
    _, learned = learned_list(rows)
    assert learned["fields"].get("token") == token
    assert learned["fields"]["last_activity"]


def test_the_only_date_is_of_the_opening_post_where_long_threads_say_so() -> None:
    """What else stands on a page of one post may be taken for an earlier one."""
    days = {1: 11, 2: 11, 5: 10}
    rows = "".join(
        f'<tr class="row"><td><a href="/topic/{replies}">Radio number {replies + 50} hums</a></td>'
        f"<td><i>2026-11-{day} 10:15</i></td></tr>"
        for replies, day in days.items()
    )
    _, learned = learned_list(rows, [thread(1), thread(5)])
    assert learned["fields"]["created_at"] == "./td[2]/i[1]"


def test_a_count_is_one_of_several_columns_that_are_made_alike() -> None:
    rows = "".join(
        f'<tr class="row"><td><a href="/topic/{n}">Radio number {n + 50} hums</a></td>'
        f"<td class=number>{340 + n}</td><td class=number>{n}</td></tr>"
        for n in range(1, 8)
    )
    threads = [thread(n) for n in (1, 3)]
    _, learned = learned_list(rows, threads)
    assert learned["fields"]["reply_count"] == "./td[3]"


def test_a_row_may_be_a_heading_with_what_stands_below_it() -> None:
    rows = "".join(
        f'<h2><a href="/topic/{n + 50}">Radio number {n + 50} hums</a></h2>'
        f'<h6>By <a href="/user/ida">ida</a>, 2026-11-{n:02} 10:15</h6>'
        f"<p>{'About the radio in the yard, and about its hum. ' * 5}</p><div><a href=/topic/{n + 50}#c>{n} comments</a></div>"
        for n in range(8, 0, -1)
    )
    page, learned = learned_list(f"<tr><td>{rows}")
    assert link_groups(page)[0].size() > 8 * 240
    found = compiled("html", learned["rows"])(page.root)
    assert [one.tag for one in found] == ["h2"] * 8
    for name, told in (("author", "ida"), ("reply_count", "8 comments")):
        assert "".join(compiled("html", learned["fields"][name])(found[0])[0].itertext()) == told


def thread(replies: int) -> OpenedPage:
    posts = "".join(
        f'<div class="post" id="p{replies}{n}"><a class="user" href="/user/{n}">Ann {n}</a> <i>2026-11-{n + 10} 10:15</i>'
        f'<div class="text">A post of some length, number {n} of them.</div></div>'
        for n in range(replies + 1)
    )
    page = opened(HtmlResponse(f"https://forum.example/topic/{replies}", body=posts.encode(), encoding="utf-8"))
    assert page is not None
    return page


def test_a_date_that_stands_in_another_one_is_the_same() -> None:
    rows = "".join(
        f'<tr class="row"><td><a href="/topic/{700 + day}">Radio number {day} hums</a></td><td>by ida '
        f'<span class="age" title="2026-11-{day:02}T10:15:00"><a href="/topic/{700 + day}#m">{28 - day} days ago</a></span>'
        for day in range(8, 0, -1)
    )
    _, learned = learned_list(rows)
    assert [learned["fields"].get(name) for name in ("created_at", "last_activity")] == [None, "span.age::attr(title)"]


@pytest.mark.parametrize(("heading", "found"), [("Replies", True), ("返信", True), ("Views", False)])
def test_a_count_is_told_by_the_heading_of_its_column(heading: str, found: bool) -> None:
    rows = "".join(
        f'<tr><td><a href="/topic/{700 + n}">Radio number {n} hums</a></td><td>{n * n}</td><td>{20 - n} Nov 2026 10:15</td></tr>'
        for n in range(8)
    )
    _, learned = learned_list(f"<tr><th>Topic</th><th>{heading}</th><th>Last</th></tr>{rows}")
    assert learned["fields"].get("reply_count") == ("./td[2]" if found else None)


def test_rows_with_a_time_whose_day_stands_above_them_change_with_it() -> None:
    """A page of recent changes: no row has a number of answers, or a whole date."""
    days = "".join(
        f"<p><strong>2026-03-{20 - day}</strong></p><ul>"
        + "".join(
            f'<li><span class="time">{20 - n}:{31 + n} UTC</span> (<a class="diff" href="/w?d=1;id=T{day}{n}">diff</a>) '
            f'<a class="local" href="/w/Talk_{"abcdef"[day]}{"uvwx"[n]}">Talk of the {"abcdef"[day]} {"uvwx"[n]}</a> . . . '
            f'<a class="author" href="/w/Ida">Ida</a> - <strong>All about it, and more</strong></li>'
            for n in range(4)
        )
        + "</ul>"
        for day in range(6)
    )
    page = opened(HtmlResponse("http://f.example/w?action=rc", body=f"<h1>Recent</h1>{days}".encode(), encoding="utf-8"))
    assert page is not None
    group = next(one for one in link_groups(page) if "Talk" in one.titles[0])
    shape = shape_of(group.urls)
    assert shape is not None
    table = learn_list(group, shape, [])
    assert table is not None
    assert table["fields"]["token"] == "span.time"
