"""Ids of posts as they are learned: from any attribute of a row, else of what stays the same of a post."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from scrapy.http import HtmlResponse

from forums.sites.definition.selectors import compiled
from forums.sites.discovery.opened_page import OpenedPage, opened
from forums.sites.discovery.thread_wrapper import learn_comments

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WORDS = [
    "It hums since it rained.",
    "Mine did, too: a new seal helped.",
    "Which seal was that?",
    "The blue one, for three euros.",
]


def thread(number: int, row: str) -> OpenedPage:
    rows = "".join(
        row.format(place=n, id=900 + 10 * number + n, days=20 - n, name=("ida", "walter")[n % 2], text=f"{text} ({number})")
        for n, text in enumerate(WORDS, 1)
    )
    body = f"<html lang=en><title>Thread {number}</title><body><h1>Thread {number}</h1>{rows}</body></html>"
    headers = {"Content-Type": "text/html", "Date": format_datetime(NOW, usegmt=True)}
    page = opened(HtmlResponse(f"https://forum.example/t/{number}", body=body.encode(), encoding="utf-8", headers=headers))
    assert page is not None
    return page


def ids(row: str) -> list[str]:
    pages = [thread(number, row) for number in (1, 2)]
    learned = learn_comments(pages)
    assert learned is not None
    field = learned["fields"]["id"]
    select = field if isinstance(field, str) else field["select"]
    rows = [one for page in pages for one in compiled("html", learned["rows"])(page.root)]
    return [compiled("html", select)(one)[0] for one in rows]


def test_an_attribute_of_any_name_tells_posts_apart() -> None:
    row = """<div class="comment" id="c{place}" data-number="{place}" data-pk="{id}" data-timestamp="17637{id}00"><a class="user"
    href="/user/{name}">{name}</a> <i>2026-11-{days:02} 10:15</i><div class="text">{text}</div></div>"""
    assert ids(row) == [str(900 + 10 * number + n) for number in (1, 2) for n in range(1, 5)]


@pytest.mark.parametrize(
    ("date", "last"),
    [
        ("<i>2026-11-{days:02} 10:15</i>", "2026-11-19 10:15"),
        ('<i title="2026-11-{days:02} 10:15">{days}d</i>', "2026-11-19 10:15"),
        ("<i>{days} days ago</i>", "It hums since it rained. (1)"),
    ],
)
def test_where_there_is_none_a_post_is_known_by_what_does_not_change(date: str, last: str) -> None:
    author = '<a class="user" href="/user/{name}">{name}</a>'
    found = ids(f'<div class="comment">{author} {date}<div class="text">{{text}}</div></div>')
    assert (found[0], len(set(found))) == (f"Thread 1/walter/{last}", 8)


@pytest.mark.parametrize(
    "line",
    [
        "<div>{name} <i>2026-11-{days:02} 10:15</i></div>",
        '<div>\n 2026-11-{days:02} 10:15 <a class="user" href="/user/{name}">{name}</a> <b>719</b></div>',
        '<div><a class="user" href="/user/{name}">{name}</a> 2026-11-{days:02} 10:15 <b>719</b></div>',
    ],
)
def test_a_name_or_a_date_is_a_text_next_to_elements(line: str) -> None:
    row = f'<div class="comment" id="c{{id}}">{line}<div class="text">{{text}}</div></div>'
    pages = [thread(number, row) for number in (1, 2, 3)]
    learned = learn_comments(pages)
    assert learned is not None
    (first, *_) = compiled("html", learned["rows"])(pages[0].root)
    values = [compiled("html", learned["fields"][name])(first)[0] for name in ("author", "created_at")]
    author, date = (value if isinstance(value, str) else "".join(value.itertext()) for value in values)
    assert (author.strip(), date.split()[:2]) == ("walter", ["2026-11-19", "10:15"])
