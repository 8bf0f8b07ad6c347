"""schema.org by reference: comments and authors that JSON-LD names by `@id`, and comments that name their parent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from forum_reader.page.records import Reader
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
TEXTS = [f"{word} lichen birch sundial trowel plum moss pier\nsecond line of it" for word in ("cider", "oboe", "trowel", "ferry")]
POSTS = [
    {"text": text, "dateCreated": f"2026-11-2{n}T09:05:00Z", "author": {"@type": "Person", "name": name}}
    for n, (text, name) in enumerate(zip(TEXTS, ("ann", "bob", "cyd", "dov"), strict=True))
]
OPENING = {"@context": "https://schema.org", "@type": "DiscussionForumPosting", "@id": "#op", "headline": "A door"} | POSTS[0]
COMMENTS = [{"@type": "Comment", "@id": f"#c{n}"} | post for n, post in enumerate(POSTS[1:])]


def by_id() -> list[Any]:
    people = [{"@id": f"#u{n}"} | post["author"] for n, post in enumerate(POSTS)]
    posts = [one | {"author": {"@id": f"#u{n}"}} for n, one in enumerate([OPENING, *COMMENTS])]
    return [{"@graph": [posts[0] | {"comment": [{"@id": one["@id"]} for one in COMMENTS]}, *posts[1:], *people]}]


FORMS = {
    "by id": by_id(),
    "by id in separate scripts": by_id()[0]["@graph"],
    "reverse": [{"@graph": [OPENING, *(one | {"@reverse": {"comment": {"@id": "#op"}}} for one in COMMENTS)]}],
    "parent item": [
        {"@graph": [OPENING, *(one | {"parentItem": {"@id": "#op", "@type": "DiscussionForumPosting"}} for one in COMMENTS)]}
    ],
    "in both ways": [OPENING | {"comment": [one | {"parentItem": {"@id": "#op"}} for one in COMMENTS]}],
    "nested": [OPENING | {"comment": COMMENTS}],
    "page's main entity": [{"@graph": [{"@type": "WebPage", "mainEntity": {"@id": "#op"}}, OPENING | {"comment": COMMENTS}]}],
    "in the parent's @reverse": [OPENING | {"@reverse": {"parentItem": COMMENTS}}],
    "discusses": [{"@graph": [OPENING, *(one | {"discusses": {"@id": "#op"}} for one in COMMENTS)]}],
    "ids with and without address": [
        OPENING | {"comment": [{"@id": f"#c{n}"} for n in range(3)]},
        *(one | {"@id": f"https://ld.example/t/1#c{n}"} for n, one in enumerate(COMMENTS)),
    ],
    "blank nodes": [
        {"@graph": [OPENING | {"comment": [{"@id": f"_:b{n}"} for n in range(3)]}]},
        *(one | {"@id": f"_:b{n}"} for n, one in enumerate(COMMENTS)),
    ],
    "item list": [
        OPENING | {"comment": {"@type": "ItemList", "itemListElement": [{"@type": "ListItem", "item": one} for one in COMMENTS]}}
    ],
    "ordered list": [OPENING | {"comment": {"@list": COMMENTS}}],
    "prefixed": [json.loads(json.dumps(OPENING | {"comment": COMMENTS}).replace('"@type": "', '"@type": "schema:').replace(
        '"text"', '"schema:text"').replace('"comment"', '"http://schema.org/comment"'))],
}  # fmt: skip


def read(values: list[Any], around: str = "{}") -> Any:
    scripts = "".join(
        f'<script type="application/ld+json">{around.replace("{}", json.dumps(value))}</script>' for value in values
    )
    html = f"<html lang=en><head><title>A door</title>{scripts}</head><body><div id=app></div></body></html>"
    return read_page(html, "https://ld.example/t/1", now=NOW)


@pytest.mark.parametrize("form", FORMS)
def test_posts_are_joined_by_their_ids(form: str) -> None:
    page = read(FORMS[form])
    assert page.reader is Reader.SCHEMA_ORG
    assert [(post.author, post.text) for post in page.posts] == list(zip(("ann", "bob", "cyd", "dov"), TEXTS, strict=True))
    assert [post.published for post in page.posts] == [datetime(2026, 11, 20 + n, 9, 5, tzinfo=UTC) for n in range(4)]


@pytest.mark.parametrize("around", ["<!-- {} -->", "//<![CDATA[\n{}\n//]]>", "/*<![CDATA[*/ {} /*]]>*/", "\n{};\n", "[{},\n]"])
def test_what_stands_around_the_json_is_left_out(around: str) -> None:
    assert [post.author for post in read(FORMS["nested"], around).posts] == ["ann", "bob", "cyd", "dov"]


def test_raw_line_breaks_in_strings_are_kept() -> None:
    script = json.dumps(FORMS["nested"][0]).replace("\\n", "\n")
    page = read_page(
        f'<html><script type="application/ld+json">{script}</script><body>x</body></html>', "https://ld.example/t/1", now=NOW
    )
    assert [post.text for post in page.posts] == TEXTS


def test_a_fragment_of_two_nodes_names_none() -> None:
    people = [{"@type": "Person", "@id": f"https://ld.example/u/{n}#me", "name": name} for n, name in enumerate(("ann", "bob"))]
    page = read([OPENING | {"author": {"@id": "#me"}, "comment": COMMENTS[0] | {"author": {"@id": people[1]["@id"]}}}, *people])
    assert [post.author for post in page.posts][1:] == ["bob"]
    assert page.posts[0].author != "ann"


def test_answers_to_comments_keep_their_parents() -> None:
    answers = [COMMENTS[0], COMMENTS[1] | {"parentItem": {"@id": "#c0"}}, COMMENTS[2] | {"@reverse": {"comment": {"@id": "#c0"}}}]
    page = read([{"@graph": [OPENING | {"comment": [{"@id": "#c0"}]}, *answers]}])
    assert [post.parent for post in page.posts] == [None, None, "0", "0"]


def test_references_in_a_circle_and_to_nothing_end() -> None:
    circle = [
        COMMENTS[0] | {"comment": {"@id": "#c1"}},
        COMMENTS[1] | {"comment": [{"@id": "#c0"}, {"@id": "#nowhere"}, 7, None]},
    ]
    page = read([{"@graph": [OPENING | {"comment": {"@id": "#c0"}}, *circle]}, 5, "text", [[]]])
    assert [post.author for post in page.posts] == ["ann", "bob", "cyd"]
