"""`read_page`: names of guests, which have no link, in words of several languages."""

from __future__ import annotations

from datetime import UTC, datetime

from forum_reader.page.records import SeenPage
from forum_reader.readers.page_reader import read_page

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
WORDS = (
    "Rádio bručí, jakmile rozsvítím lampu, ať ho zapojím kamkoli.",
    "Mně to dělalo také, než jsem mezi ně dal filtr.",
    "Tady pomohla delší anténa a skoro nic nestojí.",
    "Zkuste nejdřív jinou zásuvku, možná mají jednu pojistku.",
    "Bylo to tak: zásuvka u okna má jinou pojistku.",
    "To rád slyším a díky, že jste napsal, jak to dopadlo.",
)


def seen(body: str) -> SeenPage:
    return read_page(f"<html><head><title>Rádio</title></head><body>{body}</body></html>", "https://forum.example/t/1", now=NOW)


def test_a_guest_whose_link_leads_to_his_own_page_is_named() -> None:
    names = ['<a href="/user/ida">ida</a>', '<a href="https://romek.example">Romek</a> (host)', '<a href="/user/jan">jan</a>'] * 2
    rows = "".join(
        f'<div class="box"><div class="sub">Napsal uživatel {name} dne 3 Listopad, 2014 - 09:{n}1.</div>'
        f'<div class="content"><p>{text}</p></div></div>'
        for n, (name, text) in enumerate(zip(names, WORDS, strict=True))
    )
    assert [post.author for post in seen(rows).posts] == ["ida", "Romek", "jan"] * 2


def test_labels_and_date_in_one_paragraph_with_the_text_are_not_text() -> None:
    names = ["Huoh", "Valkku", "-", "LK", "Sinna", "Valkku"]
    rows = "".join(
        f'<table class="list"><tr><td class="subject">Re: Radio</td></tr><tr><td class="wrap"><table><tr><td class="body">'
        f"<p><b>Lähettäjä</b>:&nbsp;{name}&nbsp;<br>Päivämäärä:&nbsp; 27.8.24 21:{n}8:52<br><br>{text}</p>"
        f'</td></tr></table></td></tr><tr><td class="nav"><a href="/report?i={n}">Ilmoita</a></td></tr></table>'
        for n, (name, text) in enumerate(zip(names, WORDS, strict=True))
    )
    posts = seen(rows).posts
    assert [post.author for post in posts] == names
    assert [post.text for post in posts] == list(WORDS)
