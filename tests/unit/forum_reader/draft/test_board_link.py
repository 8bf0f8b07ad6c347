"""The link of a thread's page to its board."""

from __future__ import annotations

import pytest
from scrapy.http import HtmlResponse

from forum_reader.draft.address_shape import shape_of
from forum_reader.draft.boards import board_field
from forum_reader.draft.page_sample import OpenedPage, opened

SITE = "https://yard.example"
BOARDS = ("pumps", "seals")


def page(address: str, link: str) -> OpenedPage:
    trail = f'<p class="trail"><a href="{link}">Board</a></p>'
    found = opened(HtmlResponse(address, body=f"<title>A thread</title>{trail}<p>Text.</p>".encode(), encoding="utf-8"))
    assert found is not None
    return found


@pytest.mark.parametrize(("form", "is_known"), [("/{}/", True), ("../../{}/", True), ("../", False)])
def test_a_link_says_the_board_only_where_it_holds_its_id(form: str, is_known: bool) -> None:
    shape = shape_of([f"{SITE}/{board}/" for board in BOARDS], whole=True)
    assert shape is not None
    pages = [(page(f"{SITE}/{board}/one/", form.format(board)), f"{SITE}/{board}/") for board in BOARDS]
    field = board_field(pages, shape)
    assert (field is not None) is is_known
