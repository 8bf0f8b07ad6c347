"""A fleet of which a part is stopped, with real workers and crawlers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleet import ToyFleet, is_untouched
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("no_process_left")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ToyFleet]:
    with ToyFleet(tmp_path, "toy=1,toy_two=1", TRAWL_SITES_DIR=str(tmp_path)) as fleet:
        fleet.beat()
        yield fleet


def test_what_is_stopped_does_not_start_comes_when_resumed_and_ends_at_once_when_told_so(fleet: ToyFleet) -> None:
    trawl = "from cli.main import main; main({words})"
    assert "toy: stopped" in fleet.run(trawl.format(words=["stop", "toy", "--reason", "a deploy"]))
    fleet.node()
    first = fleet.wait_whole("toy_two/0")
    assert not [record for record in fleet.registry.crawlers() if record.spider == "toy"], "it was never launched"

    assert fleet.ask("resume_fleet.delay().get(timeout=60)") == "{}"
    whole = fleet.wait_whole("toy/0", "toy_two/0")
    assert is_untouched(first["toy_two/0"], whole["toy_two/0"])

    def exits() -> list[str]:
        return sorted((str(record.last_exit) for record in fleet.registry.crawlers()), reverse=True)

    # At once: pages in flight are not waited for.
    assert "toy, toy_two: stopped" in fleet.run(trawl.format(words=["stop", "toy", "toy_two", "--now"]))
    wait_until(lambda: not fleet.processes(), lambda: f"all crawlers end\n{fleet.said()}")
    wait_until(
        lambda: exits()[0] == "killed (SIGKILL)" and exits()[-1] in ("killed (SIGKILL)", "drained"),  # between two pages
        lambda: f"their supervisors have told it: {fleet.registry.crawlers()}",
    )
