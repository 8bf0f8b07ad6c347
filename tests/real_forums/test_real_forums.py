"""Everything that a guest of a real forum can see is stored, and stays right after the forum has changed.

Run by `make test-real-forums` (ONLY="misago" for some of them), not by `make test`: it installs from a registry.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import redis

from tests.real_forums.askbot import Askbot
from tests.real_forums.flaskbb import FlaskBB
from tests.real_forums.fossil import Fossil
from tests.real_forums.hyperkitty import HyperKitty
from tests.real_forums.ikiwiki import IkiWiki
from tests.real_forums.isso import Isso
from tests.real_forums.kareha import Kareha
from tests.real_forums.machina import Machina
from tests.real_forums.mediawiki import MediaWiki
from tests.real_forums.mezzanine import Mezzanine
from tests.real_forums.mhonarc import MHonArc
from tests.real_forums.misago import Misago, MisagoPages
from tests.real_forums.mylittleforum import MyLittleForum
from tests.real_forums.nodebb import NodeBB
from tests.real_forums.oddmuse import Oddmuse
from tests.real_forums.public_inbox import PublicInbox
from tests.real_forums.punkweb import PunkwebBB
from tests.real_forums.redmine import Redmine
from tests.real_forums.roundup import Roundup
from tests.real_forums.software import Software, Truth
from tests.real_forums.spirit import Spirit
from tests.real_forums.tinyib import TinyIB
from tests.real_forums.waline import Waline
from tests.real_forums.watching import Watch, differences
from tests.real_forums.wordpress import WordPress, WordPressNewest, WordPressNewestPage
from tests.real_forums.wwwboard import WWWBoard

KINDS: list[type[Software]] = [
    Misago, MisagoPages, NodeBB, FlaskBB, Fossil, HyperKitty, PublicInbox, MHonArc, Askbot, Machina, Spirit,
    PunkwebBB, Redmine, WordPress, WordPressNewestPage, WordPressNewest, Roundup,
    IkiWiki, Mezzanine, MediaWiki, Isso, WWWBoard, TinyIB, Waline, Kareha, MyLittleForum, Oddmuse,
]  # fmt: skip
ONLY = os.environ.get("ONLY", "").split()


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("no_process_left")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not ONLY or kind.name in ONLY], ids=lambda kind: kind.name)
def test_what_a_guest_can_see_is_stored_and_stays_right(
    kind: type[Software], tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with kind(tmp_path / "forum") as forum:
        forum.populate()
        watch = Watch(forum, tmp_path / "trawl", redis_url, redis_client)
        for name, value in watch.environment.items():
            monkeypatch.setenv(name, value)
        first = forum.truth()
        assert len(first.topics) >= 200, "too little to show anything"

        begun = time.monotonic()
        watch.scan(deep=True)
        minutes, pages = (time.monotonic() - begun) / 60, watch.asked_for()
        assert (differences(first, watch.stored().seen), watch.dead()) == ([], [])

        watch.look()
        forum.change()
        second = forum.truth()
        if watch.look():
            looked = [line for line in differences(second, watch.stored().seen, most=10_000) if "missing" in line]
            print(f"\n{kind.name}: {len(looked)} missing after a look at the newest messages alone")  # noqa: T201 - as `_say`
        watch.scan()
        missing = [line for line in differences(second, watch.stored().seen, most=10_000) if "missing" in line]
        assert [line for line in missing if line.split()[0] not in kind.unlisted] == []

        effort = watch.effort()
        changed = len(watch.asked_for()) - len(pages)

        watch.check()
        stored = watch.stored()
        assert differences(second, stored.seen) == []
        assert stored.gone_topics >= first.topics.keys() - second.topics.keys()
        assert stored.gone_comments >= first.comments.keys() - second.comments.keys()
        _say(kind.name, first, second, effort)
        least = len({page for page in pages if not page.endswith("/robots.txt")})
        print(  # noqa: T201 - as `_say`
            f"{kind.name}: {minutes:.1f} minutes and {len(pages)} requests for all of it, of {least} different pages "
            f"({len(pages) / least:.2f} times the least); {changed} for what came then, {len(missing)} of it found by checks only"
        )
        assert len(pages) <= 1.1 * least


def _say(name: str, first: Truth, second: Truth, effort: dict[str, tuple[int, int]]) -> None:
    print(  # noqa: T201 - shown by `pytest -s`
        f"\n{name}: {len(first.topics)} topics and {len(first.comments)} replies, then {len(second.topics)} and "
        f"{len(second.comments)}: all equal, what went is marked; after the second scan, readings and requests: {effort}"
    )
