"""`read_page`: one or two posts next to a box of other threads, whose rows look like posts."""

from __future__ import annotations

import pytest

from forum_reader.page.records import PageKind

from .test_lone_posts import ANSWER, WORDS, seen

NAMES = ("walter", "Ben K", "Maria", "old-oak", "nora")
SNIPPETS = (
    "I wonder about the lamp in my hall, it flickers at night and nobody…",
    "My new receiver has no sound at all since I bought it, what could…",
    "Last week a friend brought me an amplifier from the fifties that…",
    "The plug is warm after an hour, should I be worried about that or…",
)


def post(n: int, name: str, text: str) -> str:
    return (
        f'<div class="post" id="p{n}"><div class="who"><a href="/user/{n}">{name}</a><br>Posts: {n * 7}</div>'
        f'<span class="date">2026-03-0{n + 3} 10:15</span><div class="text"><p>{text}</p></div>'
        f'<a href="/reply/{n}">Reply</a></div>'
    )


def box(count: int, kind: str = "item", *, snippets: bool = True, names: bool = True) -> str:
    rows = "".join(
        f'<div class="{kind}"><a class="title" href="/t/{40 + n}">Another thread number {n} of lamps</a> '
        + (f'<a href="/user/{n + 20}">{NAMES[n % 5]}</a> ' if names else "")
        + f'<span class="date">2026-02-1{n} 08:1{n}</span>'
        + (f'<p class="snippet">{SNIPPETS[n % 4]}</p>' if snippets else "")
        + "</div>"
        for n in range(count)
    )
    return f'<div class="related"><h3>Related discussions</h3>{rows}</div>'


BOXES = {
    "one": box(1), "two": box(2), "three": box(3), "four": box(4), "as posts": box(3, "post"), "no names": box(3, names=False),
    "no texts": box(4, snippets=False), "texts by their class": box(3).replace("snippet", "content"),
}  # fmt: skip


@pytest.mark.parametrize("above", [False, True], ids=["below", "above"])
@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("count", [1, 2])
def test_other_threads_are_no_posts(count: int, name: str, above: bool) -> None:
    told = [("ida", WORDS), ("walter", ANSWER)][:count]
    posts = f'<div class="posts">{"".join(post(n, *one) for n, one in enumerate(told))}</div>'
    page = seen(BOXES[name] + posts if above else posts + BOXES[name])
    assert page.kind is PageKind.THREAD
    assert [(one.author, one.text) for one in page.posts] == told


TITLE = '<h3><a href="/t/{}">{}</a></h3><div class="text">'


def titled(row: str, address: str, title: str) -> str:
    return row.replace('<div class="text">', TITLE.format(address, title))


def test_an_opening_post_with_the_title_of_its_thread_is_a_post() -> None:
    """The heading of the page is the name of the site."""
    first = titled(post(0, "ida", WORDS), "1-humming", "What hums in the hall")
    page = seen(first + post(1, "walter", ANSWER) + post(2, "Maria", "And the lamp?"))
    assert [one.author for one in page.posts] == ["ida", "walter", "Maria"]


def test_posts_of_which_the_first_and_the_last_name_another_thread_are_posts() -> None:
    first, last = post(0, "ida", WORDS), post(2, "Maria", f"{WORDS} And: {ANSWER}")
    rows = titled(first, "70", "An older one about lamps"), post(1, "walter", ANSWER), titled(last, "72", "One about the hall")
    assert [one.author for one in seen("".join(rows)).posts] == ["ida", "walter", "Maria"]
