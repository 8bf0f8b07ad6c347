"""Targets that read addresses, site files, items of the stream and text for terminals."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
from hypothesis import strategies as st

from forum_reader.definition.page_requests import place_of, shown
from forums.records.stored import InvalidItem
from forums.records.tasks_and_items import parse, task_of_scan
from forums.sites import SiteError
from forums.sites.load import load_file
from redis_components.errors import ConfigError
from redis_components.server.printable import in_one_line, masked_text
from redis_components.server.url import address_of
from tests.attacks.test_fuzzed_inputs import TREE, as_toml
from tests.fuzz.target import Target

URLS = (
    "http://forum.example/t/1?page=2#x", "https://[::ffff:127.0.0.1]:443/", "http://u:pw@host@other/", "http://0x7f.1/", "//h",
    "redis+sentinel://:pw@a:1,b:2/svc/0?sentinel_ssl=no", "redis+cluster://u:p@[::1]:7000/?x=1", "http://e\tx/", "http:\\\\h",
    "http://xn--/", "http://ﬀ.example/", "redis://:a%zz@h:99999/0", "http://h:0x50/", "rediss+cluster://@/",
)  # fmt: skip
SITE = "profile base_url forums pages list comments rows url id title author created_at regex format headers cookies also_allowed"
FIELDS = "kind site id forum_id title body author created_at fetched_at url parent_id thread_id reply_count views number complete"


def _url(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    shown(place_of(text))
    with suppress(ConfigError):
        address_of(text)
    masked_text(text)
    assert "\x1b" not in in_one_line(text)
    assert "\n" not in in_one_line(text)


def _site_file(folder: Path) -> Any:
    file = folder / "shop.toml"

    def read(raw: bytes) -> None:
        file.write_bytes(raw)
        with suppress(SiteError):
            load_file(file)

    return read


def _item(raw: bytes) -> None:
    with suppress(InvalidItem):
        parse(raw)
    task_of_scan(raw)


def _site_text(tables: dict[str, Any]) -> bytes:
    lines = [f"{name} = {as_toml(value)}" for name, value in tables.items()]
    return ('profile = "phpbb"\nbase_url = "http://h"\nforums = ["1"]\n[pages.comments]\n' + "\n".join(lines)).encode(
        "utf-8", "replace"
    )


def _site_target() -> Target:
    first = st.dictionaries(st.sampled_from(SITE.split()), TREE, max_size=4).map(_site_text)
    words = (
        *SITE.split(),
        'profile = "xenforo"',
        "[pages.list]",
        'css = "a::text"',
        "re:test(., '(a+)+$')",
        "{page}",
        "xpath = ",
    )
    return Target(name="site-file", read=_site_file(Path(mkdtemp(prefix="trawl-fuzz-"))), first=first, words=words)


def _item_target() -> Target:
    kinds = st.sampled_from(("post", "comment", "forum", "scan", "check", "x"))
    first = st.tuples(kinds, st.dictionaries(st.sampled_from(FIELDS.split()), TREE, max_size=8))
    made = first.map(lambda one: msgspec.json.encode({**_encodable(one[1]), "kind": one[0]}))
    return Target(name="item of the stream", read=_item, first=made, words=tuple(FIELDS.split()))


def _encodable(value: Any) -> Any:
    """Without lone surrogates, which this encoder refuses, and numbers that it does not know."""
    if isinstance(value, dict):
        return {str(_encodable(name)): _encodable(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_encodable(one) for one in value]
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return str(value) if isinstance(value, int) and abs(value) >= 2**63 else value


ITEM = _item_target()
TARGETS = {
    "url": lambda: Target(name="url", read=_url, first=st.sampled_from(URLS).map(str.encode), words=URLS),
    "site-file": _site_target,
}
