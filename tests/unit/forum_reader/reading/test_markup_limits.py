"""Which pages are read in a process apart, by their markup alone."""

from __future__ import annotations

import pytest

from forum_reader.reading.markup_limits import extraordinary, most_attributes

WORDS = "and so on, " * 700
FILLER = f"<p>{'text of a post ' * 8000}</p>"


@pytest.mark.parametrize(
    "markup",
    [
        f'<div id="data-preloaded" data-preloaded="{{&quot;topic&quot;:&quot;{WORDS * 8}&quot;}}"></div>',
        '<a title="a > b" class="x">1</a>' * 300,
        f"<script>if (a <b) {{ say('{WORDS}') }}</script>",
    ],
    ids=["JSON in an attribute", "values with the end of a tag", "a script"],
)
def test_what_forums_send_is_read_at_once(markup: str) -> None:
    assert extraordinary(FILLER + markup) is None


@pytest.mark.parametrize(
    "markup",
    [
        f"<a {' '.join(f'a{number}' for number in range(5000))}>",
        f"<a {' '.join(f'a{number}=1' for number in range(5000))}>",
        "<a " + "".join(f"""a{number}=">" b{number}='>' """ for number in range(400)) + " x" * 4000 + ">",
        '<!-- <a x=" --><a ' + "x " * 5000 + ">",
        f"""<a x=">" {"y " * 2500} z='>' {"y " * 2500}>""",
    ],
    ids=["names", "values", "values with the end of a tag", "a tag in a comment", "several values with the end of a tag"],
)
def test_a_tag_with_thousands_of_attributes_is_not(markup: str) -> None:
    assert "attributes" in (extraordinary(FILLER + markup) or "")
    assert most_attributes(markup) > 4000
