"""`read_page`: posts whose author stands behind a label, and whose only link is their number."""

from __future__ import annotations

import pytest

from forum_reader.page.records import PageKind
from forum_reader.readers.page_reader import read_page

from .test_few_posts import ANSWER, WORDS, seen

PEOPLE = ("Ida Iver (ida)", "Walter W (walter)", "Nora (nora)")
TEXTS = (WORDS, ANSWER, "And the lamp? It may be an old one with a dimmer.")


def message(n: int, who: str) -> str:
    return (
        f'<tr><th><a href="msg{709 + n}">msg{709 + n} (view)</a></th><th>Author: {who}</th><th>Date: 2026-03-0{n + 4} 10:15</th>'
        f'</tr><tr><td colspan="3" class="content"><pre>{TEXTS[n]}</pre></td></tr>'
    )


def changes(people: list[str]) -> str:
    rows = "".join(
        f"<tr><td>2026-03-0{n + 4} 10:15:22</td><td>{who}</td><td>set</td><td>messages: + msg{709 + n}</td></tr>"
        for n, who in enumerate(people)
    )
    return f"<table><tr><th>Date</th><th>User</th><th>Action</th><th>Args</th></tr>{rows}</table>"


@pytest.mark.parametrize("people", [PEOPLE[:2], PEOPLE, PEOPLE[:1] * 2, PEOPLE[:1] * 3], ids=len)
@pytest.mark.parametrize("history", [True, False], ids=["with its changes", "alone"])
def test_who_wrote_the_messages_of_an_issue(people: tuple[str, ...], history: bool) -> None:
    about = "<table><tr><th>Priority</th><td>bug</td></tr></table><p>Created on <b>2026-03-04 10:10</b> by <b>ida</b>.</p>"
    rows = "".join(message(n, who) for n, who in enumerate(people))
    after = changes([one.partition(" ")[0] for one in people]) if history else ""
    page = seen(f"{about}<table><tr><th colspan=3>Messages</th></tr>{rows}</table>{after}", "https://bugs.example/issue12")
    assert page.kind is PageKind.THREAD
    assert [(post.author, post.text) for post in page.posts] == list(zip(people, TEXTS, strict=False))


BADGES = {
    "a number": '{} <span class="badge">{}</span>',
    "a level above": '{}<sup class="lvl" title="Level">{}</sup>',
    "reputation in brackets": '<span class="name">{}</span><span class="reputation">({})</span>',
    "a level in front": '<span class="lv">Lv.{1}</span> <span>{0}</span>',
}


@pytest.mark.parametrize("form", BADGES)
def test_the_number_of_a_badge_is_no_part_of_a_name(form: str) -> None:
    names = ("ann", "bob", "cy the 3rd", "dov99")
    rows = "".join(
        f'<div class="msg" id="m{n}"><div class="who"><a href="/u/{n}">{BADGES[form].format(name, 7 * n + 3)}</a></div>'
        f'<div class="when">2026-11-2{n} 09:05</div><div class="what">{"hinge sundial marrow birch " * (n + 2)}</div></div>'
        for n, name in enumerate(names)
    )
    posts = read_page(f"<html><body><h1>A door</h1>{rows}</body></html>", "https://forum.example/t/1").posts
    assert [post.author for post in posts] == list(names)
