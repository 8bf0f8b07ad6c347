"""Pages that are asked for with a body, and the addresses that say so."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forum_reader.definition import load
from forum_reader.definition.load import site_of
from forum_reader.definition.page_requests import apart, with_body
from forums.sites import Site, SiteError

OF_THREADS = {"url": "/t/{thread}"}


def site(listed: dict[str, object], comments: dict[str, object] | None = None, **fields: object) -> Site:
    """A site of JSON pages, whose list is asked for as `listed` says."""
    table = {
        "base_url": "http://forum.example",
        "forums": ["7"],
        "pages": {
            "list": {"format": "json", "rows": "rows", "fields": {"id": {"select": "id", **fields}}, **listed},
            "comments": {"format": "json", "rows": "rows", "fields": {"id": "id", "body": "b"}, **(comments or OF_THREADS)},
        },
    }
    return site_of(load.read(Path("books.toml"), table))


def test_a_form_is_sent_with_its_values_quoted() -> None:
    made = site({"url": "/search", "body": {"form": {"f": "{forum}", "q": 'a&b={"c":1}', "page": "{page}"}}})
    asking = made.asking("list", made.url("list", forum="ü/7", number=3))
    assert (asking.url, asking.method) == ("http://forum.example/search", "POST")
    assert asking.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert parse_qsl(asking.body) == [("f", "ü/7"), ("q", 'a&b={"c":1}'), ("page", "3")]


def test_json_has_numbers_where_the_interface_wants_numbers() -> None:
    given_ = {
        "query": "{ topics { id } }",
        "v": {"f": "{forum:int}", "n": ["{page}", "p{page}"], "after": "{cursor}", "ok": True},
    }
    made = site({"url": "/graphql", "cursor": "end", "body": {"json": given_}})
    first = made.asking("list", made.url("list", forum="7", number=2))
    assert msgspec.json.decode(first.body) == {
        "query": "{ topics { id } }",
        "v": {"f": 7, "n": [2, "p2"], "after": None, "ok": True},
    }
    after = made.asking("list", made.url("list", forum="x", cursor="A=="))
    assert msgspec.json.decode(after.body)["v"] == {"f": "x", "n": [1, "p1"], "after": "A==", "ok": True}
    assert after.headers == {"Content-Type": "application/json"}


def test_each_page_has_an_address_that_no_other_has() -> None:
    made = site({"url": "/search", "body": {"form": {"page": "{page}"}}})
    assert made.url("list", forum="7", number=2) == "http://forum.example/search#page=2"
    assert made.asking("comments", made.url("comments", thread="9#1")).url == "http://forum.example/t/9%231"


def test_post_without_a_body_is_post() -> None:
    made = site({"url": "/all", "method": "POST"})
    assert made.asking("list", made.url("list", forum="7")) == msgspec.structs.replace(
        made.asking("comments", "http://forum.example/all"), method="POST"
    )


@given(st.text())
def test_a_body_comes_out_of_an_address_as_it_went_in(body: str) -> None:
    try:
        body.encode()
    except UnicodeEncodeError:
        return
    assert apart(with_body("http://forum.example/x?y=1", body)) == ("http://forum.example/x?y=1", body)


def test_parts_of_an_id_stand_where_the_address_has_them() -> None:
    made = site({"url": "/f/{forum}"}, {"url": "/show?b={thread.1}&t={thread.2}"}, regex=r"/(\w+)/(\d+)", join=".")
    assert made.url("comments", thread="b7.12") == "http://forum.example/show?b=b7&t=12"
    with pytest.raises(SiteError, match=r"pages.comments: \{thread.2\}: the id 'b7' has 1 part$"):
        made.url("comments", thread="b7")
