"""Any text in an address or a form of the status page gets an answer, also from who may act: no fault, and nothing that acts."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring.api.access import Tokens
from monitoring.app import create_app
from monitoring.pages.actions import ACTIONS
from monitoring.source import Source
from tests.integration.test_pages_actions import form_of
from tests.integration.test_pages_login import ACT, READ, Browser, source
from tests.support.examples import examples

__all__ = ["source"]  # a fixture

ODD = [
    *(
        "",
        "books",
        "../x",
        "a\n\x1b[31m",
        "\0",
        "<script>",
        "-a",
        "{{7*7}}",
        "%s%s",
        "x" * 3_000,
        "\u202e",
        "nan",
        "-inf",
        "1e308",
    ),
    *(
        "9" * 400,
        "http://h:99999/",
        "http://[::1]@/",
        "http://\xb2/",
        "https://h/" + "a" * 3_000,
        "author:\0",
        'author:"',
        "a=b\nc",
    ),
    *("file:///etc/passwd", "=1+1", "0", "1", "1.5", "1e308", "a=b\nc"),
]
TEXT = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PAGES = ["/site/{}", "/service/{}", "/crawler/{}", "/search?q={}", "/search?author={}", "/act/{}", "/login?next={}"]
PAGES += [f"/{name}?{field}={{}}" for name in ("events", "history", "dead", "jobs") for field in ("site", "range", "page", "q")]


@pytest.fixture
def operator(source: Source, monkeypatch: pytest.MonkeyPatch) -> Browser:
    monkeypatch.setenv("TRAWL_FLEET", "books=1")
    browser = Browser(app=create_app(source, tokens=Tokens(read=READ, act=ACT)))
    assert browser.log_in(ACT) == 303
    return browser


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(PAGES), TEXT)
def test_any_address_of_a_page_gets_an_answer(operator: Browser, page: str, text: str) -> None:
    code, html, _ = operator.ask("GET", page.replace("{}", quote(text, safe="")))
    assert code < 500
    assert "<script>" not in html.replace("<script src", "")


@settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(ACTIONS)), st.data())
def test_any_form_gets_an_answer(operator: Browser, action: str, data: st.DataObject) -> None:
    fields = {field.name: data.draw(st.just("books") | TEXT, field.name) for field in ACTIONS[action].fields}
    code, _, _ = operator.ask("POST", f"/act/{action}", form_of(operator, action) | fields)
    assert code in (200, 400)
