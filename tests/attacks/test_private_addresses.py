"""The owner of a name chooses the address that it resolves to, and shall not choose one of our network."""

from __future__ import annotations

import asyncio
import json

import pytest

from cli.main import main
from forums.breaker.probe import probe
from forums.sites import load_site
from forums.sites.http.fetch import FetchFailed
from tests.attacks.two_sites import TwoSites, fetch
from tests.support import own_names
from tests.support.processes import wait_until
from tests.support.watched_site import Page
from workers.state.holds import Breakers

HANDLERS = json.dumps(dict.fromkeys(("http", "https"), "tests.support.own_names.Handler"))
PUBLIC = "93.184.216.34"


class Names:
    """What names resolve to, in this process and in crawlers, and what came of it."""

    def __init__(self, sites: TwoSites) -> None:
        self._path = sites.folder / "names.json"
        self.log = own_names.log_of(self._path)

    def answer(self, **answers: list[list[str]]) -> None:
        """`answers` by the part before `.books.test`, and of localhost."""
        named = {name if name == "localhost" else f"{name}.books.test": found for name, found in answers.items()}
        self._path.write_text(json.dumps(named))
        self.log.write_text("")

    def connected(self) -> set[str]:
        """The addresses that were connected to."""
        lines = self.log.read_text().splitlines()
        return {line.removeprefix("connects to ") for line in lines if line.startswith("connects to ")}


@pytest.fixture
def names(sites: TwoSites, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Names of this test, asked in this process, too."""
    monkeypatch.setenv(own_names.VARIABLE, str(sites.folder / "names.json"))
    monkeypatch.setattr("aiohttp.connector.DefaultResolver", own_names.OwnNames)
    monkeypatch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", own_names.connect_on_loopback)
    own_names.forget()
    return Names(sites)


def at(name: str, port: int) -> str:
    return f"http://{name}.books.test:{port}"


@pytest.mark.parametrize("address", ["127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "10.0.0.1", "169.254.169.254", "fd00::1"])
def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(sites: TwoSites, names: Names, address: str) -> None:
    sites.declare(base=at("forum", sites.mine.port))
    sites.post("/own")
    names.answer(forum=[[address]])
    sites.task("own", f"{at('forum', sites.mine.port)}/own")
    log = sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert (names.connected(), sites.mine.asked) == (set(), []), log
    (reason,) = sites.dead()
    assert f"forum.books.test resolves to {address}, not to a public address" in reason
    assert "allow_private = true" in reason
    with pytest.raises(FetchFailed, match=f"forum.books.test resolves to {address}"):
        fetch(f"{at('forum', sites.mine.port)}/own", site=load_site("mine"))
    assert names.connected() == set()


@pytest.mark.parametrize(
    ("answers", "cause", "reason"),
    [({"forum": [["127.0.0.1"]]}, "unreachable", "resolves to 127.0.0.1"), ({}, "unreachable", "its name is not resolved")],
)
def test_a_site_whose_name_becomes_private_or_is_not_resolved_is_held_and_loses_nothing(
    sites: TwoSites, names: Names, answers: dict[str, list[list[str]]], cause: str, reason: str
) -> None:
    sites.declare(base=at("forum", sites.mine.port), in_a_row=2)
    names.answer(**answers)
    for number in range(4):
        sites.task(f"t{number}", f"{at('forum', sites.mine.port)}/t/{number}")
    breakers = Breakers(sites.client)
    with sites.crawler(DOWNLOAD_HANDLERS=HANDLERS) as log:
        wait_until(lambda: "mine" in breakers.open_ones(), lambda: f"the breaker opens: {log()}", 60)
    opened = breakers.open_ones()["mine"]
    assert (opened.cause, reason in opened.reason) == (cause, True)
    assert (sites.dead(), sites.mine.asked) == ([], [])


def test_a_name_that_is_public_first_and_private_then_is_looked_at_each_time_and_used_as_it_was_looked_at(
    sites: TwoSites, names: Names
) -> None:
    sites.declare(base=at("forum", sites.mine.port))
    sites.post("/own")
    names.answer(forum=[[PUBLIC], [PUBLIC], ["127.0.0.1"]])
    sites.task("own", f"{at('forum', sites.mine.port)}/own")
    log = sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert (names.connected(), sites.mine.asked) == ({PUBLIC}, []), log
    assert "resolves to 127.0.0.1" in str(sites.dead())
    lines = names.log.read_text().splitlines()
    assert lines[:2] == [f"asked for forum.books.test: {PUBLIC}", f"connects to {PUBLIC}"], "one answer for each connection"
    names.answer(forum=[[PUBLIC, "127.0.0.1"]])
    sites.task("both", f"{at('forum', sites.mine.port)}/own")
    sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert (names.connected(), sites.mine.asked) == ({PUBLIC}, []), "of both kinds the public one"


def test_a_redirect_to_a_private_name_and_a_proxy_at_one_reach_nobody(sites: TwoSites, names: Names) -> None:
    away = at("pictures", sites.other.port)
    sites.declare(top=f'also_allowed = ["{away}"]')
    sites.post("/own")
    sites.mine.redirect("/away", f"{away}/stolen")
    names.answer(pictures=[["127.0.0.1"]])
    sites.task("away", f"{sites.mine.url}/away")
    sites.task("own", f"{sites.mine.url}/own")
    sites.store(f"{sites.mine.url}/own", proxy=away)
    log = sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert sites.other.asked == [], log
    assert sites.texts() == ["own text of /own"], "an address that stands in the site's file is reached"
    assert ["resolves to 127.0.0.1" in reason for reason in sites.dead()] == [True, True]
    with pytest.raises(FetchFailed, match=r"resolves to 127\.0\.0\.1"):
        fetch(f"{sites.mine.url}/away", site=load_site("mine"))
    assert sites.other.asked == []


def test_a_site_file_or_the_operator_allows_names_of_a_private_network(
    sites: TwoSites, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    forum = at("forum", sites.mine.port)
    sites.declare(base=forum, top="allow_private = true")
    sites.post("/own")
    names.answer(forum=[["127.0.0.1"]])
    sites.task("own", f"{forum}/own")
    sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert sites.texts() == ["own text of /own"]
    assert fetch(f"{forum}/own", site=load_site("mine")).status == 200

    sites.declare(base=forum)
    monkeypatch.setenv("TRAWL_ALLOW_PRIVATE", "1")
    sites.task("again", f"{forum}/own")
    sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert sites.texts() == ["own text of /own"] * 2
    assert fetch(f"{forum}/own", site=load_site("mine")).status == 200


def test_localhost_of_a_site_file_is_this_machine_and_no_other(sites: TwoSites, names: Names) -> None:
    here = f"http://localhost:{sites.mine.port}"
    sites.declare(base=here)
    sites.post("/own")
    names.answer(localhost=[["10.0.0.1"]])
    sites.task("lied", f"{here}/own")
    sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert (names.connected(), len(sites.dead())) == (set(), 1)
    names.answer(localhost=[["127.0.0.1"]])
    sites.task("own", f"{here}/own")
    sites.crawl(DOWNLOAD_HANDLERS=HANDLERS)
    assert sites.texts() == ["own text of /own"]


def test_a_new_site_is_not_looked_at_by_a_private_name_nor_where_its_page_leads(
    sites: TwoSites, names: Names, capfd: pytest.CaptureFixture[str]
) -> None:
    names.answer(forum=[["127.0.0.1"]])
    forum = at("forum", sites.mine.port)
    assert main(["sites", "new", forum, "--name", "books"]) == 1
    said = capfd.readouterr().err
    assert "forum.books.test resolves to 127.0.0.1" in said
    assert "--allow-private" in said
    assert sites.mine.asked == []
    with pytest.raises(FetchFailed, match=r"resolves to 127\.0\.0\.1"):
        sites.other.redirect("/", f"{forum}/")
        fetch(f"{sites.other.url}/")
    assert sites.mine.asked == [], "its own address was typed, and may be looked at; where it leads was not"
    sites.mine.pages["/"] = Page("<title>Books</title><a href='/f/1'>one</a>")
    done = main(["sites", "new", forum, "--name", "books", "--profile", "generic", "--allow-private"])
    assert done == 0, capfd.readouterr().err
    assert "allow_private = true" in (sites.folder / "books.toml").read_text()


def test_a_probe_reaches_no_private_name(sites: TwoSites, names: Names) -> None:
    sites.declare(base=at("forum", sites.mine.port))
    names.answer(forum=[["127.0.0.1"]])
    with pytest.raises(FetchFailed, match=r"resolves to 127\.0\.0\.1"):
        asyncio.run(probe(load_site("mine"), "list"))
    assert sites.mine.asked == []
