"""Who guesses tokens waits longer and longer; the owner does not, and a program with an old token keeps nobody out."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from monitoring.api.access import FREE, LONGEST_S, MOST_KNOWN, GuessedTooOften, Guesses, Scope, Tokens, address_of
from monitoring.api.routes import create_api
from monitoring.app import create_app
from monitoring.pages.login import Login
from monitoring.source import Source
from tests.integration.test_pages_login import ACT, ELSEWHERE, READ, Browser

GUESSES = [f"guess-{n:018}" for n in range(200)]


@dataclass
class Clock:
    """Tells the time that the test says."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def show(guesses: Guesses, token: str, who: str = "a", **options: bool) -> Scope | float:
    """What it opens, or how long to wait."""
    try:
        return guesses.scope_of(f"Bearer {token}", who, **options)
    except GuessedTooOften as error:
        return float(error.headers["Retry-After"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """That of every login and API that is made."""
    told = Clock()
    for function in (Login.__init__, Guesses.__init__):
        defaults = function.__kwdefaults__
        assert defaults
        monkeypatch.setitem(defaults, "clock", told)
    return told


@pytest.fixture
def guesses(clock: Clock) -> Guesses:
    return Guesses(Tokens(read=READ, act=ACT), clock=clock)


def test_in_a_day_an_address_has_few_guesses(guesses: Guesses, clock: Clock) -> None:
    looked_at = 0
    for second in range(86_400):
        clock.now = 1000.0 + second
        looked_at += show(guesses, f"guess-{second}") is Scope.NOTHING
    assert FREE < looked_at <= FREE + 86_400 / LONGEST_S + 6


def test_each_wait_is_longer_and_others_do_not_wait(guesses: Guesses, clock: Clock) -> None:
    waits = []
    for guess in GUESSES[: FREE + 9]:
        assert show(guesses, guess) is Scope.NOTHING
        if isinstance(wait := show(guesses, ACT), float):  # a right one is not told from wrong ones
            waits.append(wait)
            assert show(guesses, "another") == wait
            clock.now += wait
    assert waits == [2, 3, 5, 9, 17, 33, 61, 61, 61, 61]
    assert show(guesses, ACT, "b") is Scope.ACT
    assert show(guesses, ACT) is Scope.ACT, "the wait is over"


def test_the_same_wrong_token_is_not_a_guess_and_no_token_is_none(guesses: Guesses) -> None:
    for _ in range(1000):
        assert show(guesses, "an old token") is Scope.NOTHING
        assert guesses.scope_of("", "a") is guesses.scope_of("Bearer ", "a") is Scope.NOTHING
    assert show(guesses, ACT) is Scope.ACT


def test_a_program_whose_token_was_right_is_let_in_while_somebody_guesses_at_its_address(guesses: Guesses) -> None:
    assert show(guesses, READ, is_program=True) is Scope.READ
    for guess in GUESSES[:FREE]:
        show(guesses, guess, is_program=True)
    assert show(guesses, READ, is_program=True) is Scope.READ
    assert isinstance(show(guesses, ACT, is_program=True), float), "the other one was not shown there before"


def test_what_is_remembered_is_bounded(guesses: Guesses) -> None:
    for number in range(MOST_KNOWN + 5):
        show(guesses, GUESSES[number % 200], f"w{number}")
        show(guesses, READ, f"r{number}", is_program=True)
    assert len(guesses._known) == len(guesses._right) == MOST_KNOWN


def test_an_owner_of_a_network_of_ipv6_is_one() -> None:
    ours = {address_of((f"2001:db8:1:2:{n:x}::1", 5)) for n in range(100)}
    assert len(ours) == 1
    assert address_of(("2001:db8:1:3::1", 5)) not in ours
    assert address_of(("::ffff:192.0.2.9", 5)) == address_of((ELSEWHERE, 5)) == ELSEWHERE
    assert address_of(None) == ""
    assert address_of(("a socket", 0)) == "a socket"


@pytest.fixture
def page(redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, clock: Clock) -> Any:
    for name in ("TRAWL_DATA_DIR", "TRAWL_SITES_DIR"):
        monkeypatch.setenv(name, str(tmp_path))
    return create_app(Source(redis_url, {"books": 1}), tokens=Tokens(read=READ, act=ACT))


def test_the_page_lets_nobody_guess_on_and_keeps_no_owner_out(page: Any) -> None:
    owner, stranger = Browser(app=page, client=ELSEWHERE), Browser(app=page, client=ELSEWHERE)
    _, _, headers = owner.ask("POST", "/login", {"token": ACT})
    kept = [value.partition(";")[0] for value in owner.cookies_set]
    assert headers["location"] == "/"
    for guess in GUESSES[:FREE]:
        assert stranger.log_in(guess) == 401
    code, said, headers = stranger.ask("POST", "/login", {"token": ACT})
    assert (code, headers["retry-after"]) == (429, "2")
    assert "too many wrong tokens" in said
    assert owner.ask("GET", "/sites")[0] == 200, "its session goes on"
    again = Browser(app=page, client=ELSEWHERE, cookie=next(one for one in kept if one.startswith("trawl_browser=")))
    assert again.log_in(ACT) == 303, "a browser that was there before"
    assert Browser(app=page, client="192.0.2.10").log_in(READ) == 303, "another address"


def test_who_guesses_in_the_header_of_a_page_waits_too(page: Any) -> None:
    stranger, owner = Browser(app=page, client=ELSEWHERE), Browser(app=page, client="192.0.2.10")
    for guess in GUESSES[:FREE]:
        assert stranger.ask("GET", "/search", authorization=f"Bearer {guess}")[0] == 303
    assert stranger.ask("GET", "/search", authorization=f"Bearer {READ}")[0] == 303, "a right one is not told from wrong ones"
    assert owner.ask("GET", "/search", authorization=f"Bearer {READ}")[0] == 200


def test_a_made_up_browser_and_that_of_a_reader_have_no_allowance_of_their_own(page: Any, guesses: Guesses) -> None:
    reader = Browser(app=page)
    assert reader.log_in(READ) == 303
    assert not any("trawl_browser" in one for one in reader.cookies_set)
    named = guesses.browser_name(Scope.ACT)
    assert guesses.is_browser(named)
    for made_up in ("", ".", "a.b", f"x{named}", named[:-1], "é.é"):
        assert not guesses.is_browser(made_up)
    other = Guesses(Tokens(act="b" * 24)).browser_name(Scope.ACT)
    assert not guesses.is_browser(other), "the tokens were changed"
    assert Guesses(Tokens(read=READ)).browser_name(Scope.READ)


def test_the_api_answers_429_and_says_when(redis_url: str, redis_client: redis.Redis, clock: Clock) -> None:
    program = Browser(app=create_api(redis_client, Tokens(read=READ, act=ACT), redis_url), client=ELSEWHERE)
    basic = base64.b64encode(f"u:{READ}".encode()).decode()
    assert program.ask("GET", "/api/v1/jobs", authorization=f"Basic {basic}")[0] == 200
    codes = [program.ask("GET", "/api/v1/jobs", authorization=f"Bearer {guess}")[0] for guess in GUESSES[: FREE + 3]]
    assert codes == [401] * FREE + [429] * 3
    code, said, headers = program.ask("GET", "/api/v1/runs", authorization=f"Bearer {ACT}")
    assert (code, headers["retry-after"]) == (429, "2")
    assert said == '{"detail":"too many wrong tokens: wait 2 s"}'
    assert program.ask("GET", "/api/v1/jobs", authorization=f"Basic {basic}")[0] == 200, "it was right there before"
    assert program.ask("GET", "/livez")[0] == 200
