"""The folder of wheels is shared: whoever can write there has nothing installed that was not deployed."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from fleet_operations.deploy import environments
from redis_components.errors import ConfigError
from workers.state.services import Version

GOOD, BAD = b"what was deployed", b"what somebody has put there"
DIGEST = hashlib.sha256(GOOD).hexdigest()
VERSION = Version(name=DIGEST[:12], file="shop-1-py3-none-any.whl", digest=DIGEST, project="shop.settings")


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TRAWL_WHEELS_DIR", str(tmp_path / "shared"))
    file = environments.wheel_of("shop", VERSION)
    file.parent.mkdir(parents=True)
    file.write_bytes(GOOD)
    return file


def test_a_wheel_that_is_changed_after_it_was_looked_at_is_installed_as_it_was(
    wheel: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[bytes] = []

    def pip(arguments: list[str], _failed: str, *, python: str) -> None:
        wheel.write_bytes(BAD)
        installed.append(Path(arguments[-1]).read_bytes())
        assert python.startswith(str(wheel.parents[3] / "data"))

    monkeypatch.setattr(environments, "run_pip", pip)
    assert environments.prepare(redis_client, "shop", VERSION)
    assert installed == [GOOD]


def test_a_changed_wheel_is_refused_and_leaves_no_environment(
    wheel: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "run_pip", lambda *_, **__: pytest.fail("nothing is installed"))
    wheel.write_bytes(BAD)
    with pytest.raises(ConfigError, match="not what was deployed"):
        environments.prepare(redis_client, "shop", VERSION)
    assert not environments.python_of("shop", VERSION)


def pipe(place: Path) -> None:
    os.mkfifo(place)


def endless(place: Path) -> None:
    place.symlink_to("/dev/zero")


def sparse(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 40)


def folder(place: Path) -> None:
    place.mkdir()


@pytest.mark.parametrize("put", [pipe, endless, sparse, folder])
def test_what_is_no_wheel_is_neither_waited_for_nor_read(
    wheel: Path, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(environments, "run_pip", lambda *_, **__: pytest.fail("nothing is installed"))
    wheel.unlink()
    put(wheel)
    with pytest.raises(ConfigError, match=re.escape(str(wheel))):
        environments.prepare(redis_client, "shop", VERSION)


def test_a_wheel_is_written_through_nobodys_link(tmp_path: Path) -> None:
    theirs, place, wheel = tmp_path / "theirs", tmp_path / "place", tmp_path / "a.whl"
    theirs.write_bytes(b"theirs")
    wheel.write_bytes(GOOD)
    place.symlink_to(theirs)
    with pytest.raises(FileExistsError):
        environments.copied(wheel, place)
    assert theirs.read_bytes() == b"theirs"


def test_a_wheel_that_grows_while_it_is_copied_costs_no_more_than_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    growing = tmp_path / "a.whl"
    growing.write_bytes(GOOD)
    known = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        about = known(descriptor)
        with growing.open("ab") as file:
            file.write(BAD * 1000)
        return about

    monkeypatch.setattr(os, "fstat", fstat)
    environments.copied(growing, tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_size < 3 * 1000 * len(BAD)


@pytest.mark.parametrize(
    "wrong",
    [
        Version(name="../../../x", file="a.whl", digest="../../../x", project="x"),
        Version(name=DIGEST[:12], file="../../a.whl", digest=DIGEST, project="x"),
        Version(name=DIGEST[:12], file="a.whl --index-url=http://x", digest=DIGEST, project="x"),
        Version(name=DIGEST[:12], file="-r.whl/x", digest=DIGEST, project="x"),
        Version(name=DIGEST[:12], file="a.whl\n", digest=DIGEST, project="x"),
        Version(name="0" * 12, file="a.whl", digest=DIGEST, project="x"),
    ],
)
def test_a_version_of_redis_names_no_path_and_no_option(wrong: Version) -> None:
    with pytest.raises(ConfigError, match="is not a version that trawl deploy has made"):
        environments.wheel_of("shop", wrong)
