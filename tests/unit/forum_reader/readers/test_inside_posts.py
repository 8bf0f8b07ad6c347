"""What stands inside a post: nested quotes and hidden text stay, an emoji that is a picture is its alt."""

from __future__ import annotations

import pytest
from lxml import html

from forum_reader.readers.page_reader import read_page
from forum_reader.reading.html_text import text_of_elements

QUOTE = (
    "<blockquote><cite>ann wrote:</cite><blockquote><cite>dov wrote:</cite>first of all</blockquote>an older line</blockquote>"
)
HIDDEN = '<div class="spoiler"><button>Show hidden</button><div style="display:none">the raven keeps the key</div></div>'
EMOJI = '<img class="smiley" src="/s/1.png" alt="😀"> <img class="lazy" src="/blank.gif" data-src="/up/door.jpg" alt="">'
WORDS = [
    f"{word} marrow birch trowel anvil moss sundial cider lichen kiln ferry raven plum"
    for word in ("hinge", "gasket", "oboe", "tin")
]


def test_quotes_hidden_texts_and_emojis_are_kept() -> None:
    bodies = [WORDS[0], QUOTE + WORDS[1], f"{WORDS[2]} {HIDDEN}", f"{WORDS[3]} {EMOJI}"]
    rows = "".join(
        f'<div class="msg" id="m{n}"><div class="who"><a href="/u/{n}">{name}</a></div><div class="when">2026-11-2{n}T09:05</div>'
        f'<div class="what">{body}</div></div>'
        for n, (name, body) in enumerate(zip(("ann", "bob", "cyd", "dov"), bodies, strict=True))
    )
    posts = read_page(
        f"<html><head><title>A door</title></head><body><h1>A door</h1>{rows}</body></html>", "https://in.example/t/1"
    ).posts
    quoted = f"ann wrote: dov wrote: first of all an older line {WORDS[1]}"
    hidden = f"{WORDS[2]} the raven keeps the key"
    assert [" ".join(post.text.split()) for post in posts] == [WORDS[0], quoted, hidden, f"{WORDS[3]} 😀"]


FILES = {
    "a list of files": '<div class="attachments"><a href="/f/9">door-plan.pdf</a></div>',
    "a link among them": '<p class="attachment">Attached: <a href="/f/9">door-plan.pdf</a> (12 KB)</p>',
    "in the text": 'see <a class="attachment" href="/f/9">door-plan.pdf</a>',
}


@pytest.mark.parametrize("form", FILES)
def test_names_of_attachments_are_kept(form: str) -> None:
    rows = "".join(
        f'<li class="c" id="c{n}"><p class="meta"><a href="/u/{n}">{name}</a> 2026-11-2{n} 09:05</p>'
        f'<div class="tx">{words}{FILES[form] if n == 1 else ""}</div></li>'
        for n, (name, words) in enumerate(zip(("ann", "bob", "cyd", "dov"), WORDS, strict=True))
    )
    posts = read_page(f"<html><body><h1>A door</h1><ul>{rows}</ul></body></html>", "https://in.example/t/1").posts
    assert ["door-plan.pdf" in post.text for post in posts] == [False, True, False, False]


@pytest.mark.parametrize(
    ("picture", "text"),
    [
        ('<img alt="😀">', "a 😀 b"), ('<img class="smilies" alt=":)">', "a :) b"),
        ('<img src="/emoji/door.png" alt=":door:">', "a b"),
        ('<img class="smilies" alt="Smile">', "a b"), ('<img alt=":)">', "a b"), ('<img alt="A photo of 😀 a door">', "a b"),
        ('<img class="emoji" alt="">', "a b"), ('<img class="emoji">', "a b"), ('<img alt="❤️">', "a ❤️ b"),
        ('<img alt="写真">', "a b"),
    ],
)  # fmt: skip
def test_only_the_alt_of_an_emoji_is_text(picture: str, text: str) -> None:
    assert text_of_elements([html.fromstring(f"<div>a {picture} b</div>")]) == text
