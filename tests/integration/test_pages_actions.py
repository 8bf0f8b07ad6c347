"""What can be done on the page: by whom, once, with what said before, and kept in the audit."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
import redis

from forums.state.alerts import Alerts
from monitoring.api.access import Tokens
from monitoring.app import create_app
from monitoring.pages.actions import ACTIONS, Field, Given
from monitoring.part import part
from monitoring.source import Source
from redis_components.errors import ConfigError
from tests.integration.storage.test_publish import Receiver
from tests.integration.test_pages import bury
from tests.integration.test_pages_login import ACT, READ, Browser, source
from workers.state.holds import FleetHolds
from workers.state.registry import Registry
from workers.state.reports import latest

__all__ = ["source"]  # a fixture


@pytest.fixture
def operator(source: Source) -> Browser:
    browser = Browser(app=create_app(source, tokens=Tokens(read=READ, act=ACT)))
    assert browser.log_in(ACT) == 303
    return browser


def form_of(browser: Browser, action: str, about: str = "") -> dict[str, str]:
    """What the form carries without anything written into it."""
    code, html, _ = browser.ask("GET", f"/act/{action}{about}")
    assert code == 200
    assert {**ACTIONS, **part().actions()}[action].follows in unescape(html), "what follows is said first"
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))


def do(browser: Browser, action: str, about: str = "", **given: str) -> str:
    """The page that says what came of it."""
    code, html, _ = browser.ask("POST", f"/act/{action}", form_of(browser, action, about) | given)
    assert code == 200, html
    return html


def test_each_action_does_what_its_command_does_and_is_in_the_audit(operator: Browser, redis_client: redis.Redis) -> None:
    do(operator, "pause", "?service=books", reason="they asked <b>")
    assert [(one.service, one.hold.by, one.hold.reason) for one in FleetHolds(redis_client).all(["books"])] == [
        ("books", "the page", "they asked <b>")
    ]
    assert "they asked &lt;b&gt;" in operator.ask("GET", "/service/books")[1]
    do(operator, "resume", "?service=books")
    assert not FleetHolds(redis_client).all(["books"])
    assert "books: 3 crawlers" in do(operator, "scale", "?service=books", size="3")
    assert Registry(redis_client).desired() == {"books": 3}
    for number in range(3):
        bury(redis_client, "books", f"https://example.org/{number}", "HTTP 503")
    assert "replayed: 2 requests" in do(operator, "replay", "?service=books", limit="2")
    acts = latest(redis_client, 20)[::-1]
    assert [act.what[0] for act in acts] == ["pause", "resume", "scale", "replay"]
    assert acts[3].what == ("replay", "books", "--limit=2")
    assert all((act.by, act.outcome, act.origin) == ("the page", "done", "127.0.0.1") for act in acts)


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("pause", {"service": "nobody"}),
        ("pause", {"service": "books", "reason": "two\nlines"}),
        ("drain", {"site": "a b"}),
        ("scale", {"service": "books", "size": "-1"}),
        ("scale", {"service": "books", "size": "1e9"}),
        ("scale", {"service": "books", "size": "999999999"}),
        ("scale", {"service": "books"}),
        ("seed", {}),
        ("rescan", {}),
        ("rescan", {"forums": "f1", "depth": "0"}),
        ("replay", {"service": "nobody"}),
        ("roll", {"service": "nobody"}),
    ],
)
def test_what_cannot_be_done_says_why_keeps_what_was_written_and_changes_nothing(
    operator: Browser, redis_client: redis.Redis, action: str, given: dict[str, str]
) -> None:
    before = sorted(redis_client.keys())
    code, html, _ = operator.ask("POST", f"/act/{action}", {**form_of(operator, action), **given})
    assert code == 400
    assert "Nothing was changed" in html
    after = [key for key in sorted(redis_client.keys()) if not key.endswith(b":audit")]
    assert after == before


def test_a_form_is_sent_once_and_by_nobody_else(operator: Browser, redis_client: redis.Redis) -> None:
    form = form_of(operator, "scale", "?service=books") | {"size": "2"}
    for foreign in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example"}):
        assert operator.ask("POST", "/act/scale", form, **foreign)[0] == 403
    assert operator.ask("POST", "/act/scale", form | {"word": "guessed"})[0] == 409
    assert operator.ask("POST", "/act/scale", {**form, "word": ""})[0] == 409
    other = Browser(app=operator.app)
    other.log_in(ACT)
    assert other.ask("POST", "/act/scale", form)[0] == 409, "another session's word"
    assert not Registry(redis_client).desired()
    assert operator.ask("POST", "/act/scale", form)[0] == 200
    assert operator.ask("POST", "/act/scale", form | {"size": "9"})[0] == 409, "a double click"
    assert Registry(redis_client).desired() == {"books": 2}


def test_who_may_only_read_is_offered_nothing_and_does_nothing(
    source: Source,
    redis_client: redis.Redis,
) -> None:
    app = create_app(source, tokens=Tokens(read=READ, act=ACT))
    reader, stranger = Browser(app=app), Browser(app=app)
    reader.log_in(READ)
    assert "/act/" not in reader.ask("GET", "/service/books")[1]
    for action in {**ACTIONS, **part().actions()}:
        assert reader.ask("GET", f"/act/{action}")[0] == 403
        assert reader.ask("POST", f"/act/{action}", {"service": "books", "word": ""})[0] == 403
        assert stranger.ask("GET", f"/act/{action}")[0] == 303
        assert stranger.ask("POST", f"/act/{action}", {"service": "books"})[0] == 403
    assert Browser(app=create_app(source)).ask("GET", "/act/pause")[0] == 403, "without a token to act nobody does"
    assert not latest(redis_client, 10)


def test_the_shared_page_of_who_acts_is_not_shown_to_who_reads(operator: Browser) -> None:
    assert "/act/scale" in operator.ask("GET", "/service/books")[1]
    reader = Browser(app=operator.app)
    reader.log_in(READ)
    assert "/act/" not in reader.ask("GET", "/service/books")[1]


def test_a_field_is_one_line_of_bounded_length() -> None:
    fields = [Field(name="site", label="Site"), Field(name="reason", label="Reason")]
    given = Given(fields, {"site": ["x"], "reason": [" a  b "], "else": ["ignored"]})
    assert (given.text("reason"), given.words("seed")) == ("a  b", ["seed", "x", "--reason=a b"])
    for wrong in ("x" * 501, "a\x1b[2J", "a\nb"):
        with pytest.raises(ConfigError, match="one line of at most 500"):
            Given(fields, {"site": [wrong]})


def test_an_alert_is_made_and_tried_shown_and_removed(
    operator: Browser, redis_client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_DATABASE_URL", f"sqlite:///{tmp_path}/none.db")
    wrong = form_of(operator, "alert") | {"match": "(gpu", "to": "nowhere", "site": "exmaple"}
    code, html, _ = operator.ask("POST", "/act/alert", wrong)
    assert code == 400
    assert "Nothing was changed" in html
    for fault in ("is not closed", "mailto:you@", "there is no such site file", 'value="(gpu"'):
        assert fault in unescape(html), "each fault at once, and the form keeps what was written"
    assert "Words: is missing; To: is missing" in operator.ask("POST", "/act/alert", form_of(operator, "alert"))[1]
    assert "the test message was not taken" in unescape(
        operator.ask("POST", "/act/alert", form_of(operator, "alert") | {"match": "x", "to": "http://127.0.0.1:1/"})[1]
    )
    assert Alerts(redis_client).all() == {}
    receiver = Receiver()
    try:
        about = f"?{urlencode({'match': '显卡', 'to': receiver.url})}"
        assert 'value="显卡"' in operator.ask("GET", f"/act/alert{about}")[1]
        done = do(operator, "alert", about, match="显卡", to=receiver.url)
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
    [made] = Alerts(redis_client).all().values()
    assert [event["type"] for event in receiver.events] == ["test"]
    assert ("alert 1: a test message was sent" in done, made.secret in done, made.by) == (True, True, "the page")
    events = operator.ask("GET", "/events")[1]
    assert "显卡" in events
    assert made.secret not in events
    assert "alert 1 is removed" in do(operator, "unalert", "?number=1")
    assert Alerts(redis_client).all() == {}


def test_passwords_in_the_address_of_an_alert_are_not_kept_in_the_audit(operator: Browser, redis_client: redis.Redis) -> None:
    to = "mailto://me:hush@127.0.0.1:1?to=you@example.org"
    assert operator.ask("POST", "/act/alert", form_of(operator, "alert") | {"match": "x", "to": to})[0] == 400
    [act] = [one for one in latest(redis_client, 10) if one.what[0] == "alert"]
    assert "hush" not in repr(act)
