"""Which thread and board an address leads to: URL templates read backwards, for every profile that has them."""

from __future__ import annotations

import pytest

from forums.overview.why import _pattern


@pytest.mark.parametrize(
    ("template", "target", "expected"),
    [
        ("/post/{thread}", "/post/12", {"thread": "12"}),
        ("/post/{thread}", "/post/12/", None),
        ("/t/{thread}/page-{page}", "/t/a-b.7/page-3", {"thread": "a-b.7", "page": "3"}),
        ("/viewtopic.php?f={forum}&t={thread}&start={offset}", "/viewtopic.php?f=2&t=7&start=40", {"forum": "2", "thread": "7"}),
        ("/{thread:path}", "/a/b/c", {"thread": "a/b/c"}),
        ("https://api.example/t/{thread}.json?p={page}", "/t/9.json?p=1", {"thread": "9"}),
        ("/a.b", "/axb", None),
        ("/{thread}/{thread}", "/1/1", {"thread": "1"}),
        ("{url}", "/anything", None),  # the list says it, no address shows it
    ],
)
def test_a_template_is_read_backwards(template: str, target: str, expected: dict[str, str] | None) -> None:
    found = _pattern(template).fullmatch(target)
    got = found.groupdict() if found else None
    assert (got is None) == (expected is None)
    assert (expected or {}).items() <= (got or {}).items()
