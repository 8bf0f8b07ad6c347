"""A fleet of two crawlers reads a hostile site and an innocent one: the innocent one's threads are read, new ones too, and the
hostile one's breaker opens with the page that hurt.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.forum.process import ForumProcess
from forums.storage import Database
from tests.attacks.hostile_pages import attributes
from tests.support.demo_sites import declare
from tests.support.forum_fleet import ForumFleet
from tests.support.hostile_site import declare_hostile, hostile_site
from tests.support.processes import none_left, wait_until
from tests.support.watched_fleet import MARK
from workers.state.history import latest
from workers.state.holds import Breaker, Breakers

THREADS = 12
# An XPath that a user may write, and a page that makes it cost the cube of its size: nothing interrupts it.
DEADLY = '[pages.comments]\nblock_page = "//p[preceding-sibling::p[preceding-sibling::p[preceding-sibling::p/@none]]]"\n'
DEADLY_PAGE = ('<body class="section-viewtopic">' + "<p>x</p>" * 9_000 + "</body>").encode()


def stored_posts(url: str, site: str) -> set[str]:
    with Database.from_url(url) as database:
        return {row[0] for row in database.engine.connect().exec_driver_sql("select id from posts where site = ?", (site,))}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("page", "site_file", "says"),
    [
        (attributes(60_000).encode(), "", "has a tag with more than 4,000 attributes"),
        (DEADLY_PAGE, DEADLY, "a crawler hung while reading {url}/viewtopic.php?t="),
    ],
    ids=["tag of 60,000 attributes", "page that hangs an XPath"],
)
def test_the_innocent_site_is_read_and_the_hostile_one_is_held(tmp_path: Path, page: bytes, site_file: str, says: str) -> None:
    sites = tmp_path / "sites"
    sites.mkdir()
    with (
        none_left((MARK, str(tmp_path))),
        hostile_site(page, threads=THREADS) as (url, _),
        ForumProcess(seed=7, forums=4, threads=6, comments=3, rate=0) as well,
    ):
        declare_hostile(sites, "evil", url, site_file)
        declare(sites, "well", well.url)
        with (
            pytest.MonkeyPatch.context() as environment,
            hostile_fleet(tmp_path, well, sites, environment) as fleet,
        ):
            breakers = Breakers(fleet.client)
            wait_until(lambda: "evil" in breakers.open_ones(), lambda: f"the breaker opens\n{fleet.said()}", 120)
            opened: Breaker = breakers.open_ones()["evil"]
            assert says.format(url=url) in opened.reason, opened
            assert opened.url.startswith(f"{url}/viewtopic.php?t=")
            assert list(breakers.open_ones()) == ["evil"]

            well.control(rate=5.0)  # new threads and replies, while the hostile site is held
            wait_until(lambda: len(well.truth()["posts"]) > 4 * 6 + 2, "people write new threads", 60)
            well.control(rate=0)
            posts = set(well.truth()["posts"])
            wait_until(
                lambda: stored_posts(fleet.database_url, "well") >= posts, lambda: f"each thread is read\n{fleet.said()}", 120
            )
            if site_file:
                hung_is_named(fleet, url)


def hung_is_named(fleet: ForumFleet, url: str) -> None:
    """In the history, and among the errors of `trawl status`."""
    named = f"hung while reading {url}/viewtopic.php?t="

    def reasons() -> list[str]:
        return [run.reason or "" for run in latest(fleet.registry.client, 5_000) if run.outcome == "hung"]

    wait_until(reasons, lambda: f"it is in the history\n{fleet.said()}", 60)
    hung = reasons()
    assert all(reason.startswith(named) and reason.endswith(" of site evil") for reason in hung), hung
    assert len(hung) <= THREADS, "one crawler for a page at most"
    wait_until(
        lambda: [error for error in fleet.registry.errors() if named in error.what and error.where == "forum_detail/0"],
        lambda: f"it is told: {fleet.registry.errors()}",
    )
    assert "runpy" not in str(fleet.registry.errors())


def hostile_fleet(folder: Path, forum: ForumProcess, sites: Path, environment: pytest.MonkeyPatch) -> ForumFleet:
    environment.setenv("TRAWL_PARSE_TIMEOUT_S", "1")
    fleet = ForumFleet(folder, forum, sizes="forum_list=1,forum_detail=1", nodes="a", beats=1, sites=sites)
    fleet._more |= {"SCRAPY_SETTINGS_MODULE": "tests.support.attacked_settings"}
    return fleet
