"""From `make install` to a real forum's posts in a file, as docs/quickstart.md prints it: five minutes on two quiet cores.

The reader has a copy of the checkout in an empty home folder, and the address of a forum that nobody of this project wrote.
"""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import pytest

from tests.real_forums.fossil import Fossil
from tests.support.documented_commands import ROOT, in_blocks
from tests.support.newcomer import Newcomer
from tests.support.processes import none_left, wait_until

FIVE_MINUTES_S = 300
PAGE = ROOT / "docs/quickstart.md"
NAME = "forum.example.org"


@pytest.mark.timeout(1800)
@pytest.mark.skipif("fossil" not in (os.environ.get("ONLY") or "fossil"), reason="another software was asked for")
def test_ones_own_forum_is_in_a_file_within_five_minutes(tmp_path: Path) -> None:
    reader = Newcomer(tmp_path / "home")
    reader.arrive()
    reader.environment["TRAWL_ALLOW_PRIVATE"] = "1"  # the forum is on loopback
    with Fossil(tmp_path / "forum") as forum, none_left(folder=reader.home):
        forum.populate()
        known = {topic.title for topic in forum.truth().topics.values()}
        begun = time.monotonic()
        reader.install()
        steps: list[tuple[str, float]] = [("make install", time.monotonic() - begun)]
        exported = follow(reader, f"{forum.base_url}/forum", steps, begun)
    assert exported
    assert {row["title"] for row in exported} <= known
    print("\n" + "\n".join(f"{at:6.1f} s  {step}" for step, at in steps), f"\n{len(exported)} posts")  # noqa: T201 - for `pytest -s`
    print(f"{reader.install_cpu_s:.1f} s of processor time were the installation")  # noqa: T201
    assert steps[-1][1] <= FIVE_MINUTES_S


def follow(reader: Newcomer, address: str, steps: list[tuple[str, float]], begun: float) -> list[dict[str, str]]:
    """Type what the page prints, up to the first export; notes when each step was done. Its rows."""
    begin = PAGE.read_text("utf-8").splitlines().index("## Your own forum")
    printed = [one.text for one in in_blocks(PAGE) if one.line > begin]
    up = next(place for place, text in enumerate(printed) if text.startswith("trawl seed"))
    export = next(place for place, text in enumerate(printed) if "export posts" in text)
    for text in printed[:up]:
        here = text.replace(f"sites new https://{NAME}/", f"sites new {address} --name {NAME}")
        code, said = reader.run(here, reader.checkout)
        assert code == 0, f"{here}\n{said}"
        steps.append((text, time.monotonic() - begun))
    ports = "--port-flower 0 --port-exporter 0"
    with reader.going_on(f"trawl up {ports}", reader.checkout, "launched crawler", reader.home / "up.log"):
        steps.append(("trawl up", time.monotonic() - begun))
        for text in printed[up:export]:
            if "trawl events tail" not in text:  # goes on
                code, said = reader.run(text, reader.checkout)
                assert code == 0, f"{text}\n{said}"
                steps.append((text, time.monotonic() - begun))
        rows = wait_until(lambda: exported(reader, printed[export]), "posts are in the file", 300, every_s=1)
        steps.append((printed[export], time.monotonic() - begun))
    return rows


def exported(reader: Newcomer, text: str) -> list[dict[str, str]]:
    code, said = reader.run(text, reader.checkout)
    assert code == 0, said
    with (reader.checkout / "forum.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
