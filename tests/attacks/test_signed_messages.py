"""With signing on, who can write to Redis and has no key gives no orders: each message is kept with its reason."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from tasks.guard import signed_messages
from tests.support.broker_attack import AttackedWorker, body, container, raw, task

OLD, NEW, STRANGERS = "0" * 32, "1" * 32, "2" * 32


def signed_task(word: str, key: str, queue: str = "control") -> dict[str, Any]:
    """A message as a program of the fleet with this key would send it."""
    message = task(content=body((word,)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAWL_SIGNING_KEY", key)
        signed_messages.sign(message["headers"], base64.b64decode(message["body"]), message["properties"], queue)
    return message


def forged(**changed: Any) -> dict[str, Any]:
    """A signed message with something changed."""
    message = signed_task("captured", OLD)
    return {**message, "headers": {**message["headers"], **changed}}


def other_body() -> dict[str, Any]:
    message = signed_task("captured", OLD)
    return {**message, "body": base64.b64encode(json.dumps(body(("forged",))).encode()).decode()}


def result_elsewhere() -> dict[str, Any]:
    message = signed_task("captured", OLD)
    return {**message, "properties": {**message["properties"], "reply_to": "somebody"}}


FORGED: dict[str, tuple[Any, str, str]] = {
    "not signed": (task(), "control", "is not signed"),
    "a list as signature": (task(trawl_signature=[1]), "control", "is not signed"),
    "text as signature": (task(trawl_signature="x"), "control", "cannot be read"),
    "another's key": (signed_task("forged", STRANGERS), "control", "does not fit"),
    "other arguments": (other_body(), "control", "does not fit"),
    "another task": (forged(task="own.out_of_memory"), "control", "does not fit"),
    "a header more": (forged(trawl_round=["x", 1, 1.0]), "control", "does not fit"),
    "another place for results": (result_elsewhere(), "control", "does not fit"),
    "in another queue": (signed_task("captured", OLD), "crawlers.toy", "was signed for the queue 'control'"),
    "in another queue, renamed": (forged(trawl_queue="crawlers.toy"), "crawlers.toy", "does not fit"),
}


def test_forged_messages_are_set_aside_signed_ones_run_and_keys_are_rotated(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"{OLD}\n")
    with AttackedWorker(tmp_path, TRAWL_SIGNING_KEY_FILE=str(keys)) as worker:

        def runs(message: dict[str, Any], word: str) -> None:
            worker.send(message)
            worker.wait(lambda: word in worker.notes(), f"{word} is run")

        for message, queue, _ in FORGED.values():
            worker.send(message, queue)
        worker.wait(lambda: len(worker.dead()) == len(FORGED), "each forged one is set aside")
        found = {kept: (queue, reason) for queue, reason, kept in worker.dead()}
        for message, queue, reason in FORGED.values():
            assert found[raw(message)][0] == queue
            assert reason in found[raw(message)][1]

        sent = worker.fleet.ask("app.send_task('own.note', ['sent'], {}, countdown=None, headers={'n': (1, {2: 3.5})})")
        assert len(sent) == 36, sent
        worker.wait(lambda: "sent" in worker.notes(), "what a program sends is run")

        # a captured message, twice more in its own queue, and what is sent behind it
        captured = signed_task("once", OLD)
        runs(captured, "once")
        for again in (captured, {**captured, "headers": {**captured["headers"], "trawl_restored": 1}}):
            worker.send(again)
        runs(signed_task("after", OLD), "after")
        worker.wait(lambda: worker.worker.said().count("was put into its queue again, and was not run") >= 2, "both are refused")
        assert worker.notes().count("once") == 1
        assert "was put into its queue again" in worker.command("status")

        # remote control
        worker.broadcast(container({"method": "shutdown", "arguments": {}, "destination": None}, {"clock": 1}))
        worker.wait(lambda: "a command of remote control was ignored: it is not signed" in worker.worker.said(), "not obeyed")
        assert worker.fleet.ask("app.control.ping(['a@test'], timeout=60, limit=1)") == "[{'a@test': {'ok': 'pong'}}]"

        # rotation, without a restart
        keys.write_text(f"{NEW}\n{OLD}\n")
        runs(signed_task("old", OLD), "old")
        runs(signed_task("new", NEW), "new")
        keys.write_text(f"{NEW}\n")
        assert worker.command("dead", "messages", "purge", "--yes") == f"purged: messages {len(FORGED)}"
        worker.send(signed_task("too late", OLD))
        worker.wait(lambda: len(worker.dead()) == 1, "the old key is not accepted any more")

        # put back
        assert worker.command("dead", "messages", "replay", "-n", "1") == "replayed: messages 1"
        worker.wait(lambda: len(worker.dead()) == 1, "it comes back")
        assert worker.command("dead", "messages", "replay", "-n", "1", "--sign") == "replayed: messages 1"
        worker.wait(lambda: "too late" in worker.notes(), "what an operator has signed is run")
        assert not {"forged", "captured"} & set(worker.notes())
        assert worker.worker.process.poll() is None


def test_a_captured_command_acts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAWL_SIGNING_KEY", OLD)
    sent: list[tuple[Any, Any]] = []

    class Wire:
        def publish(self, body: Any, *, headers: Any, **_: Any) -> None:
            sent.append((body, headers))

    order = {"method": "shutdown", "arguments": {"msg": "x"}, "destination": ("a@test",), "pattern": None, "matcher": None}
    signed_messages.SigningProducer(Wire()).publish(order, headers={"clock": 1})
    body, headers = json.loads(json.dumps(sent[0]))
    one, another = signed_messages.ReceivedCommands(), signed_messages.ReceivedCommands()
    assert one.fault(body, headers) is None
    assert another.fault(body, headers) is None, "each worker hears it"
    assert "received before" in str(one.fault(body, headers))
    assert "does not fit" in str(one.fault({**body, "destination": None}, headers))
    assert "not signed" in str(one.fault(body, {}))
    young = signed_messages.ReceivedCommands()
    young._since += signed_messages.CLOCKS_DIFFER_S + 1
    assert "before this worker listened" in str(young.fault(body, headers)), "a worker before this one has heard it"
    later = time.time() + signed_messages.COMMAND_S + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert "signatures hold for 60 s" in str(signed_messages.ReceivedCommands().fault(body, headers))
