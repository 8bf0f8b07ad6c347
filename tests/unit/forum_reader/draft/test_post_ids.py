"""Ids of posts as they are learned: from any attribute of a row, else of what stays the same of a post."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from scrapy.http import HtmlResponse

from forum_reader.dates.read_date import DateReader
from forum_reader.definition.selectors import compiled
from forum_reader.draft.explore import FoundForum
from forum_reader.draft.link_groups import link_groups
from forum_reader.draft.page_sample import OpenedPage, opened
from forum_reader.draft.thread_wrapper import learn_comments
from forum_reader.draft.wrapper import wrapper_of

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WORDS = [
    "It hums since it rained.",
    "Mine did, too: a new seal helped.",
    "Which seal was that?",
    "The blue one, for three euros.",
]


def thread(number: int, row: str) -> OpenedPage:
    rows = "".join(
        row.format(
            place=n, id=900 + 10 * number + n, days=18 + n, ago=20 - n, name=("ida", "walter")[n % 2], text=f"{text} ({number})"
        )
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
        ("<i>{ago} days ago</i>", "It hums since it rained. (1)"),
    ],
)
def test_where_there_is_none_a_post_is_known_by_what_does_not_change(date: str, last: str) -> None:
    author = '<a class="user" href="/user/{name}">{name}</a>'
    found = ids(f'<div class="comment">{author} {date}<div class="text">{{text}}</div></div>')
    assert (found[0], len(set(found))) == (f"Thread 1/walter/{last}", 8)


HASHES = [f"{7 * n:08x}-b{n}d{n}-4a5b-8c6d-{n:05}e{90 - n:06}" for n in range(20)]


@pytest.mark.parametrize("form", ["{}", "{:.8}4f0c"])
def test_an_opening_post_has_the_thread_s_id(form: str) -> None:
    """Answers have UUIDs or hashes, whose last digits are no numbers."""

    def page(number: int) -> OpenedPage:
        codes = iter(form.format(one) for one in HASHES[5 * number :])
        made = thread(
            number,
            """<div class="card" id="post-{place}" data-x><a class="user" href="/user/{name}">{name}</a>
            <time datetime="2026-11-{days:02}T10:15:00Z">{days} Nov 2026</time><div class="text">{text}</div></div>""",
        )
        body = re.sub(r'id="post-(\d)" data-x', lambda at: "" if at[1] == "1" else f'id="post-{next(codes)}"', made.response.text)
        changed = opened(HtmlResponse(made.url, body=body.encode(), encoding="utf-8", headers=made.response.headers))
        assert changed is not None
        return changed

    pages = [page(number) for number in (1, 2)]
    assert [post.id for post in pages[0].posts] == [None, *(form.format(one) for one in HASHES[5:8])]
    learned = learn_comments(pages)
    assert learned is not None
    assert (learned["first_is_post"], learned["fields"]["id"]["select"]) == (True, "./@id")
    read = [
        re.search(learned["fields"]["id"]["regex"], one.get("id", ""))
        for page in pages
        for one in compiled("html", learned["rows"])(page.root)
    ]
    assert [match[1].removeprefix("post-") if match else None for match in read] == [
        None if n % 5 == 4 else form.format(HASHES[n]) for n in range(4, 13) if n != 8
    ]


def test_two_posts_of_one_author_and_one_day_are_two() -> None:
    row = """<div class="comment"><a class="user" href="/user/ida">ida</a>
    {date}<div class="text">{{text}}</div></div>"""
    exact = ids(row.format(date='<time datetime="2026-11-20T10:1{place}:00Z">20 Nov 2026</time>'))
    assert (exact[0], len(set(exact))) == ("Thread 1/ida/2026-11-20T10:11:00Z", 8)
    by_words = ids(row.format(date="<i>2026-11-20</i>"))
    assert (by_words[0], len(set(by_words))) == ("Thread 1/ida/It hums since it rained. (1)", 8)


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
    read, _ = DateReader(datetime(2026, 11, 29, tzinfo=UTC), language=None, time_zone="UTC").read(date)
    assert (author.strip(), read) == ("walter", datetime(2026, 11, 19, 10, 15, tzinfo=UTC))


def test_a_label_in_the_element_of_a_date_and_a_row_of_headings_are_left_out() -> None:
    row = """<tr><th><a href="msg{id}">msg{id}</a></th><th>Author: {name}</th><th>Date: 2026-11-{days:02}.10:15:30</th></tr>
    <tr><td colspan="3"><pre>{text} <a href="/x">See</a></pre></td></tr>"""
    pages = []
    for number in (1, 2):
        made = thread(number, row)
        body = made.response.text.replace("</h1>", '</h1><table class="said"><tr><th colspan="3">All that was said</th></tr>')
        page = opened(HtmlResponse(made.url, body=body.encode(), encoding="utf-8", headers=made.response.headers))
        assert page is not None
        pages.append(page)
    learned = learn_comments(pages)
    assert learned is not None
    rows = compiled("html", learned["rows"])(pages[0].root)
    created = learned["fields"]["created_at"]
    texts = ["".join(compiled("html", created)(one)[0].itertext()) for one in rows]
    dates = DateReader(datetime(2026, 11, 29, tzinfo=UTC), language=None, time_zone="UTC")
    assert [dates.read(text)[0] for text in texts] == [datetime(2026, 11, n, 10, 15, 30, tzinfo=UTC) for n in (19, 20, 21, 22)]


def test_a_title_is_without_what_stands_around_it_and_the_next_thread_is_no_page() -> None:
    row = """<div class="comment" id="c{id}"><a class="user" href="/user/{name}">{name}</a> <i>2026-11-{days:02} 10:15</i>
    <div class="text">{text}</div></div>"""
    titles = {1: "A pump that hums", 2: "Quiet motors"}
    pages = []
    for number, title in titles.items():
        made, on = thread(number, row), f'<a rel="next" href="/t/{3 - number}">Next</a>'
        body = re.sub("<title>.*</h1>", f"<title>\n Issue {number}: {title}\n - Yard</title>{on}", made.response.text)
        page = opened(HtmlResponse(made.url, body=body.encode(), encoding="utf-8", headers=made.response.headers))
        assert page is not None
        pages.append(page)
    links = "".join(f"<li><a href=/t/{number}>{title}</a></li>" for number, title in titles.items())
    listed = opened(
        HtmlResponse("https://forum.example/", body=f"<title>Yard</title><ul>{links}</ul>".encode(), encoding="utf-8")
    )
    assert listed is not None
    wrapper = wrapper_of(FoundForum(link_groups(listed)[0], pages))
    assert wrapper is not None
    assert wrapper.pages["comments"]["next"] == ["link[rel~=next]", "li.next a", "a.next"]
    regex = wrapper.pages["comments"]["post"]["title"]["regex"]
    assert re.findall(regex, "\n Issue 345: An older one - Yard ") == ["An older one"]


_ROW = """<div class="comment" id="c{{id}}"><a class="user" href="/user/{{name}}">{{name}}</a> <i>2026-11-{} 10:15</i>
<div class="text"><p>{{text}}</p>{}</div></div>"""


@pytest.mark.parametrize(
    ("inner", "left_out"),
    [
        ('<p>See <a class="more" href="/x">the manual</a>, too.</p>', None),
        ('<p><a class="more" href="/x">Share this</a></p>', ["a.more"]),
        ('<p><a class="more" href="/x">Share this</a></p><p>On <a class="more" href="/{id}">page {id}</a> of it.</p>', None),
    ],
)
def test_a_link_in_a_sentence_is_of_the_post(inner: str, left_out: list[str] | None) -> None:
    pages = [thread(number, _ROW.format("{days:02}", inner)) for number in (1, 2)]
    learned = learn_comments(pages)
    assert learned is not None
    body = learned["fields"]["body"]
    assert (body.get("remove") if isinstance(body, dict) else None) == left_out
    assert ("the manual" in pages[0].posts[0].text) is ("the manual" in inner)


def test_threads_that_begin_with_their_newest_post() -> None:
    """Of one thread something else was taken for posts."""
    history = '<tr id="h{id}"><td><a class="user" href="/user/{name}">{name}</a><td>2026-11-{days:02} 10:15<td><p>{text}</p></tr>'
    pages = [thread(number, _ROW.format("{ago:02}", "")) for number in (1, 2)]
    pages.insert(1, thread(3, f"<table>{history}</table>"))
    learned = learn_comments(pages)
    assert learned is not None
    assert (learned["first_is_post"], learned["order"]) == (True, "newest")
    texts = [one.find("div/p").text for one in compiled("html", learned["rows"])(pages[0].root)]
    assert texts == [f"{text} (1)" for text in WORDS[:4]]
