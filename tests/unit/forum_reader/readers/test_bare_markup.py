"""Posts in markup that says little of what is what: names outside of elements, text in cells, an opening post made otherwise."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
POSTS = [
    ("ida", "2023-03-05T09:35", "The pump stopped again after two weeks, so we took it apart and found a worn seal."),
    ("Ole K", "2023-03-08T22:07", "Mine makes a noise when it is cold."),
    ("風の子", "2023-03-09T12:14", "Has anybody tried the newer model with the metal housing? Plastic breaks in winter."),
    ("ida", "2023-03-10T06:09", "I have, since Tuesday. It has been quiet so far."),
]
Post = Callable[[int, str, datetime, str], str]


def _text_in_second_cell(n: int, name: str, when: datetime, text: str) -> str:
    head = f"<tr><td class=h3><a href=user.php?id.{n}><b>{name}</b></a></td><td class=h3>{when:%a %b %d %Y, %I:%M%p}</td></tr>"
    left = f"<td class='h3 small'>Registered Member #{3 * n}<br>Posts: {14 * n}</td>"
    return f"{head}<tr>{left}<td class=h3>{text}</td></tr><tr><td class=f><a href=#top>Back to top</a></td></tr>"


def _read(rows: str) -> list[tuple[str | None, str, str]]:
    page = f"<html lang=en><title>Pumps</title><body><ul>{rows}</ul><div id=footer><p>Powered by x.</p></div></body></html>"
    seen = read_page(page, "https://s.example/t/3", now=NOW)
    return [(one.author, f"{one.published:%Y-%m-%dT%H:%M}" if one.published else "", one.text) for one in seen.posts]


def _rows(post: Post) -> list[str]:
    return [post(n, name, datetime.fromisoformat(at), text) for n, (name, at, text) in enumerate(POSTS, 11)]


def test_text_may_stand_in_the_second_cell() -> None:
    assert _read("".join(_rows(_text_in_second_cell))) == POSTS


@pytest.mark.parametrize("count", [2, 4])
def test_paragraphs_between_rules_are_one_post(count: int) -> None:
    rows = "".join(
        f"<hr><p><b>From:</b> {name} &lt;{n}@s.example&gt;<br><b>Date:</b> {at.replace('T', ' ')}</p><p>{text}</p><p>No {n}.</p>"
        for n, (name, at, text) in enumerate(POSTS[:count])
    )
    assert _read(rows) == [(name, at, f"{text}\n\nNo {n}.") for n, (name, at, text) in enumerate(POSTS[:count])]


def test_an_opening_post_may_stand_around_its_replies() -> None:
    first, *others = (
        f"<div class=head><a class=linkName>{name}</a> <span class=label>{at.replace('T', ' ')}</span></div>"
        f"<div class=divMessage>{text}</div>"
        for name, at, text in POSTS
    )
    replies = "".join(f"<div class=postCell id={n}><div class=innerPost>{one}</div></div>" for n, one in enumerate(others, 12))
    assert _read(f"<div class=opCell id=11><div class=innerOP>{first}</div><div class=divPosts>{replies}</div></div>") == POSTS


def test_a_reply_in_a_blockquote_is_not_a_quote() -> None:
    (name, at, text), (other, later, answer), *_ = POSTS
    author = "<a href=/u/{0}>{0}</a>, <time datetime={1}+00:00>3 years ago</time>"
    opening = f"<article id=e11><div class=content><p>{text}</p></div><aside>{author.format(name, at)}</aside></article>"
    reply = f"<header>{author.format(other, later)}</header><div class=content><p>{answer}</p></div>"
    assert _read(f"{opening}<section><blockquote class=comment id=c12>{reply}</blockquote></section>") == POSTS[:2]


def test_the_day_of_joining_is_not_the_date_of_a_post() -> None:
    rows = "".join(
        f"<tr><td colspan=2><table><tr><td><span class=date>{at.replace('T', ' ')}</span></td><td>Re: pumps</td></tr></table>"
        f"</td></tr><tr><td><b><a href=/user/{n}>{name}</a></b><br><span>Joined: 2019-0{n}-11<br>Messages: {n}</span></td><td>"
        f"<div class=postbody>{text}</div></td></tr><tr><td></td><td><a href=/user/{n}>[Profile]</a></td></tr>"
        for n, (name, at, text) in enumerate(POSTS[:2], 3)
    )
    assert _read(f"<table>{rows}</table>") == POSTS[:2]


def test_a_day_of_the_week_tells_day_and_month_apart() -> None:
    dates = {name: datetime(2023, month, 1, 9) for name, month in (("ida", 3), ("Ole K", 4))}
    rows = "".join(
        f"<div class=post><a href=/user/{name[0]}>{name}</a> <i>{at:%m/%d/%Y (%a) %H:%M}</i><div class=text>{text}</div></div>"
        for (name, at), (_, _, text) in zip(dates.items(), POSTS, strict=False)
    )
    assert [at for _, at, _ in _read(rows)] == ["2023-03-01T09:00", "2023-04-01T09:00"]
