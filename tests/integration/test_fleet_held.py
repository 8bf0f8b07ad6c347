"""A fleet that is stopped: its crawlers end and stay away, whatever is restarted, and come back when it is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import ToyFleet
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1,toy_two=1", TRAWL_SITES_DIR=str(tmp_path)) as fleet:
        fleet.beat()
        yield fleet


def test_what_is_stopped_ends_stays_away_through_restarts_and_comes_back_when_resumed(fleet: ToyFleet) -> None:
    node = fleet.node("a")
    first = fleet.wait_whole("toy/0", "toy_two/0")
    said = fleet.ask("stop_fleet.delay(['toy'], reason='a deploy').get(timeout=10)")
    assert said == "{'toy': 'stopped by a task: a deploy'}"
    left = fleet.wait_whole("toy_two/0")
    assert left["toy_two/0"].pid == first["toy_two/0"].pid, "others are not touched"

    node.process.terminate()
    node.wait()
    fleet.node("b")
    second = fleet.wait_whole("toy_two/0", but_not=[left["toy_two/0"].pid])
    assert not [record for record in fleet.registry.crawlers() if record.spider == "toy" and record.node == "b@test"]

    trawl = "from cli.main import main; main({words})"
    assert fleet.run(trawl.format(words=["resume", "--all"])) == "the whole fleet: resumed"
    whole = fleet.wait_whole("toy/0", "toy_two/0")
    assert whole["toy_two/0"].pid == second["toy_two/0"].pid

    # At once: pages in flight are not waited for.
    assert fleet.run(trawl.format(words=["stop", "toy", "toy_two/0", "--now"])).startswith("toy, toy_two/0: stopped")
    wait_until(lambda: not fleet.processes(), lambda: f"all crawlers end\n{fleet.said()}", 10)
    wait_until(
        lambda: {record.last_exit for record in fleet.registry.crawlers()} == {"killed (SIGKILL)"},
        lambda: f"their supervisors have told it: {fleet.registry.crawlers()}",
    )
