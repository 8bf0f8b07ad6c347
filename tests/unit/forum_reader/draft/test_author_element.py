"""Names with ranks next to them."""

from __future__ import annotations

import pytest
from parsel import Selector

from forum_reader.draft.thread_rows import of_name_alone


@pytest.mark.parametrize(
    ("form", "rests", "found"),
    [
        ("<b>{name}</b><br>{rest}", ["Member", "Member", "Admin"], "b"),
        ("<a href='/u/1'>{name}</a> <i>{rest}</i>", ["3 posts", "4 posts", "5 posts"], "a"),
        ("<b>{rest}</b> {name}", ["Re: lamps", "Re: lamps", "Re: lamps"], "td"),  # fewer heads than names
        ("<b>{name}</b>", ["", "", ""], "td"),
        ("by <b>{name}</b> {rest}", ["here", "here", "here"], "td"),
    ],
)
def test_a_rank_is_left_out_where_it_differs_no_more_than_the_names(form: str, rests: list[str], found: str) -> None:
    cells = "".join(
        f"<td>{form.format(name=name, rest=rest)}</td>" for name, rest in zip(("ida", "ben", "mo"), rests, strict=True)
    )
    elements = [one.root for one in Selector(f"<table><tr>{cells}</tr></table>").xpath("//td")]
    assert {one.tag for one in of_name_alone(elements)} == {found}
