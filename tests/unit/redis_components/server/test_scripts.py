"""Every Lua file says in its header what its body reads."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import redis.asyncio

from forums.state.keys import LUA as FORUM_LUA
from redis_components.server.scripts import LUA, script, script_files
from tests.support.redis_server import RedisServer
from workers.state.keys import LUA as FLEET_LUA

SCRIPTS = [(name, folder) for folder in (LUA, FLEET_LUA, FORUM_LUA) for name in script_files(folder)]


@pytest.mark.parametrize(("name", "folder"), SCRIPTS)
def test_the_header_names_each_operand_that_the_body_reads(name: str, folder: Path) -> None:
    loaded = script(name, folder)
    body = "\n".join(line for line in script_files(folder)[name].read_text().splitlines() if not line.startswith("--"))
    for kind, fields, tail in (("KEYS", loaded.keys, loaded.key_tail), ("ARGV", loaded.args, loaded.tail)):
        read = {int(number) for number in re.findall(rf"{kind}\[(\d+)\]", body)}
        fixed = len(fields) - (tail is not None)
        assert read == set(range(1, fixed + 1)), f"{kind} in the header: {fields}"
    for field in (*loaded.keys, *loaded.args):
        assert re.search(rf"\blocal\b[^=\n]*\b{field}\b", body), f"{field} is not a local of the body"


@pytest.mark.parametrize(("name", "folder"), SCRIPTS)
def test_no_script_uses_an_operation_without_a_bound(name: str, folder: Path) -> None:
    source = script(name, folder).source.decode()
    assert not re.search(r"'(KEYS|SMEMBERS|SCAN|SORT|FLUSHALL|FLUSHDB)'", source)
    assert "0, -1" not in source


def test_a_header_line_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.lua").write_text("-- KEYS[1] no type\n-- Returns: nothing\n-- Retry: safe\n")
    with pytest.raises(ValueError, match=r"broken\.lua: cannot read the header line"):
        script("broken", tmp_path)


def test_a_script_that_the_server_does_not_know_is_sent_however_it_is_called(
    redis_server: RedisServer, redis_client: redis.Redis
) -> None:
    heartbeat = script("heartbeat")
    keys, args = {"owners": "s:owners"}, {"owner": "nobody", "ttl_ms": 1}
    redis_client.script_flush()
    for _ in range(2):  # unknown, then known
        assert heartbeat(redis_client, keys, args) == 0
    redis_client.script_flush()
    for _ in range(2):
        assert heartbeat.each(redis_client, [heartbeat.operands(keys, args)] * 2) == [0, 0]
    redis_client.script_flush()

    async def on_a_loop() -> list[int]:
        async with redis.asyncio.Redis.from_url(redis_server.url) as client:
            return [await heartbeat.run(client, keys, args) for _ in range(2)]

    assert asyncio.run(on_a_loop()) == [0, 0]


def test_a_missing_operand_is_named() -> None:
    with pytest.raises(TypeError, match="ttl_ms"):
        script("heartbeat").operands({"owners": "o"}, {"owner": "me"})
