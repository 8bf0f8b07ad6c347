"""Pages that nothing would interrupt are read within a limit."""

from __future__ import annotations

import pytest

from forum_reader.errors import PageTooLarge, ReaderError
from forum_reader.page.records import PageKind
from forum_reader.readers.limited_reading import read_limited

pytestmark = pytest.mark.processes
URL = "https://forum.example/t/1"


def test_a_tag_of_attributes_without_end_is_refused() -> None:
    attributes = " ".join(f"a{n}=1" for n in range(150_000))
    with pytest.raises(ReaderError, match=f"{URL}: has a tag with more than 4,000 attributes"):
        read_limited(f"<html><body {attributes}><p>x</p></body></html>", URL, seconds=1)


def test_a_large_page_that_nests_without_end_is_refused() -> None:
    post = "<div class=post-body>some words <span>3 March 2026</span> at length, and more of them than before <i>so</i>"
    with pytest.raises(PageTooLarge, match="takes more than 1 s of processor time"):
        read_limited(f"<html><body>{post * 2500}<!--{'x' * (1 << 20)}-->", URL, seconds=1)


def test_a_small_page_that_nests_without_end_is_refused() -> None:
    post = "<div class=post-body>some words <span>3 March 2026</span> at length, and more of them than before <i>so</i>"
    with pytest.raises(PageTooLarge, match="takes more than 1 s of processor time"):
        read_limited(f"<html><body>{post * 2500}", URL, seconds=1)


def test_a_large_page_is_read_as_any_other() -> None:
    posts = "".join(
        f"<div class=post id=p{n}><b class=author>name{n % 7}</b> <time datetime=2026-03-{n % 28 + 1:02}T10:00>then</time>"
        f"<div class=text>{f'This is what number {n} has to say about pears. ' * 30}</div></div>"
        for n in range(900)
    )
    page = read_limited(f"<html><body><h1>Pears</h1>{posts}</body></html>", URL)
    assert (page.kind, len(page.posts), page.posts[899].id) == (PageKind.THREAD, 900, "899")
