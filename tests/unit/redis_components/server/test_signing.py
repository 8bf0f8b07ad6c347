"""Signatures: what they cover, which keys are accepted, and what is said of the others."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from redis_components.errors import ConfigError
from redis_components.server import signing
from workers.state.beats import Schedules, StoredEntry, Unreadable
from workers.state.jobs import Job, Jobs
from workers.state.keys import FleetKeys
from workers.state.quarantine import find
from workers.state.services import Deployments, ServiceRecord, Services

OLD, NEW = "0" * 32, "1" * 32


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(signing, "_last", {})
    file = tmp_path / "keys"
    file.write_text(f"{OLD}\n")
    monkeypatch.setenv("TRAWL_SIGNING_KEY_FILE", str(file))
    return file


def test_a_signature_holds_for_its_purpose_its_parts_and_its_fleet(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = signing.seal("task", "queue", b"body")
    assert signing.fault(made, "task", "queue", b"body") is None
    for purpose, *parts in (("command", "queue", b"body"), ("task", "queueb", b"ody"), ("task", "queue"), ("task", "queue", b"")):
        assert "does not fit" in str(signing.fault(made, str(purpose), *parts))
    monkeypatch.setenv("TRAWL_NAMESPACE", "other")
    assert "does not fit" in str(signing.fault(made, "task", "queue", b"body"))


def test_the_first_key_signs_each_is_accepted_and_the_file_is_read_again(keys: Path) -> None:
    by_old = signing.seal("task")
    keys.write_text(f"{OLD}\n{NEW}\n")
    keys.write_text(f"{NEW}\n{OLD}\n")
    by_new = signing.seal("task")
    assert signing.fault(by_old, "task") is signing.fault(by_new, "task") is None
    keys.write_text(f"{OLD}\n")
    assert "does not fit" in str(signing.fault(by_new, "task"))


def test_keys_that_cannot_be_read_any_more_remain_and_an_empty_file_is_not_off(
    keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = signing.seal("task")
    for spoil in (lambda: keys.write_text("\n"), lambda: keys.write_text("short"), keys.unlink):
        spoil()
        with pytest.raises(ConfigError, match="TRAWL_SIGNING_KEY") as error:
            signing.read_keys()
        assert "short" not in str(error.value).replace("shorter", "")
        assert signing.fault(made, "task") is None
        assert "is not signed" in str(signing.fault(None, "task"))
    assert len(caplog.records) == 1


def test_without_keys_nothing_is_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing, "_last", {})
    monkeypatch.delenv("TRAWL_SIGNING_KEY", raising=False)
    monkeypatch.delenv("TRAWL_SIGNING_KEY_FILE", raising=False)
    assert not signing.signing_is_on()
    monkeypatch.setenv("TRAWL_SIGNING_KEY", "")  # as compose files pass it on
    assert not signing.signing_is_on()
    with pytest.raises(ConfigError, match="no key to sign with"):
        signing.seal("task")


def test_an_old_signature_and_one_of_the_future_do_not_hold(keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, made = time.time(), signing.seal("task")
    monkeypatch.setattr(time, "time", lambda: now + 100)
    assert signing.fault(made, "task", oldest_s=200) is None
    assert "100 s ago" in str(signing.fault(made, "task", oldest_s=50))
    monkeypatch.setattr(time, "time", lambda: now - 1000)
    assert "in the future" in str(signing.fault(made, "task", oldest_s=50))


@given(st.text() | st.none() | st.integers() | st.lists(st.text()) | st.from_regex(r"1\.\d{1,20}\.[0-9a-f]{16}\.[0-9a-f]{64}"))
def test_anything_else_is_no_signature(signature: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAWL_SIGNING_KEY", OLD)
        assert signing.fault(signature, "task")


def test_an_entry_of_the_schedule_that_somebody_wrote_past_the_fleet_is_left_out(keys: Path, redis_client: redis.Redis) -> None:
    schedules, key = Schedules(redis_client), FleetKeys().schedule()
    schedules.set("mine", StoredEntry(task="trawl.seed_forums", every_s=60))
    redis_client.hset(key, "theirs", b'{"task": "own.note", "every_s": 1, "args": ["forged"]}')
    redis_client.hset(key, "moved", redis_client.hget(key, "mine"))
    redis_client.hset(key, "changed", redis_client.hget(key, "mine").replace(b"60", b"61"))
    found = schedules.stored()
    assert isinstance(found["mine"], StoredEntry)
    reasons = {name: entry.reason for name, entry in found.items() if isinstance(entry, Unreadable)}
    assert reasons.keys() == {"theirs", "moved", "changed"}
    assert "is not signed" in reasons["theirs"]
    assert "does not fit" in reasons["moved"]


def test_a_service_a_job_and_a_version_that_somebody_wrote_past_the_fleet_is_left_out_and_named(
    keys: Path, redis_client: redis.Redis
) -> None:
    services, jobs, versions = Services(redis_client), Jobs(redis_client), Deployments(redis_client)
    services.declare("mine", ServiceRecord(spider="books"))
    assert jobs.add(Job(id="mine.1", service="mine"))
    assert jobs.swap(replace(jobs.all()["mine.1"], reason="x"))
    versions.edit("mine", lambda now: replace(now, current="c"))
    fleet = FleetKeys()
    forged = b'{"settings": {"FEEDS": {"/etc/cron.d/x": {}}}, "consumer": "jsonl:/root/.ssh/authorized_keys"}'
    redis_client.hset(fleet.services(), "theirs", forged)
    redis_client.hset(fleet.services(), "moved", redis_client.hget(fleet.services(), "mine"))
    redis_client.hset(
        fleet.services(), "more", redis_client.hget(fleet.services(), "mine").replace(b"{", b'{"consumer":"none",', 1)
    )
    redis_client.hset(fleet.jobs(), "theirs.1", b'{"id": "theirs.1", "service": "theirs"}')
    redis_client.hset(fleet.versions(), "theirs", b'{"current": "c"}')
    assert services.all() == {"mine": ServiceRecord(spider="books")}
    assert services.get("theirs") is jobs.get("theirs.1") is None
    assert {name: job.reason for name, job in jobs.all().items()} == {"mine.1": "x"}
    assert (versions.of("mine").current, versions.of("theirs").current) == ("c", "")
    named = {one.field.decode() for one in find(redis_client, ())}
    assert named == {"theirs", "moved", "more", "theirs.1"}
