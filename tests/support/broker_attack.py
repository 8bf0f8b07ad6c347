"""A worker to attack with messages, and the messages as a writer of Redis would write them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import redis

from tests.support.fleet import Program, ToyFleet
from tests.support.processes import wait_until

QUEUES = ("control", "crawlers.toy", "node.a@test")
BROADCAST = "/0.celery.pidbox"


def body(args: Any = ("good",), kwargs: Any = None, embedded: Any = None) -> list[Any]:
    return [list(args) if isinstance(args, tuple) else args, {} if kwargs is None else kwargs, embedded or {}]


def container(content: Any, headers: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A message as kombu's Redis transport keeps it; `more` are properties."""
    text = content if isinstance(content, str) else json.dumps(content)
    return {
        "body": base64.b64encode(text.encode()).decode(),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": headers,
        "properties": {
            "correlation_id": headers.get("id"),
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": "control"},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": uuid4().hex,
            **more,
        },
    }


def task(name: str = "own.note", content: Any = None, **headers: Any) -> dict[str, Any]:
    """A good message of a task, but for the headers that are given."""
    fields = {"lang": "py", "task": name, "id": uuid4().hex, "retries": 0, "timelimit": [None, None], "eta": None, **headers}
    return container(body() if content is None else content, fields)


def raw(message: Any) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message).encode()


class AttackedWorker:
    """One worker on a Redis, with the task `own.note`, which leaves a line in the list `own:notes`."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        tasks = "tests.support.own_tasks, tests.support.failing_tasks"
        self.fleet = ToyFleet(folder, "toy=1", TRAWL_TASK_MODULES=tasks, **environment)
        self._options = options

    def __enter__(self) -> Self:
        self.fleet.__enter__()
        self.client: redis.Redis = self.fleet.redis.client()
        self.worker: Program = self.fleet.node("a", "--concurrency=4", "--loglevel=INFO", *self._options)
        try:
            self.wait(lambda: " ready." in self.worker.said(), "the worker is ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.fleet.__exit__(*error)
        self.client.close()

    def wait(self, predicate: Any, reason: str, timeout_s: float = 60.0) -> Any:
        return wait_until(predicate, lambda: f"{reason}\n{self.worker.said()[-6000:]}", timeout_s)

    def send(self, message: Any, queue: str = "control") -> None:
        self.client.lpush(queue, raw(message))

    def broadcast(self, message: Any) -> None:
        self.client.publish(BROADCAST, raw(message))

    def assert_works(self, queue: str = "control") -> None:
        """A good task that is sent now is run by the same process as ever."""
        word = uuid4().hex
        self.send(task(content=body((word,))), queue)
        self.wait(lambda: self._ended() or word in self.notes(), f"a good task in {queue} is run")
        assert not self._ended(), self.worker.said()[-6000:]

    def notes(self) -> list[str]:
        return [line.decode() for line in self.client.lrange("own:notes", 0, -1)]

    def dead(self) -> list[tuple[str, str, bytes]]:
        """Queue, reason and bytes of the messages that were set aside, oldest first."""
        entries = [entry.partition(b"\n") for entry in self.client.lrange("trawl:fleet:dead_messages", 0, -1)]
        return [(json.loads(head)["queue"], json.loads(head)["reason"], rest) for head, _, rest in entries]

    def _ended(self) -> bool:
        return self.worker.process.poll() is not None

    def command(self, *arguments: str) -> str:
        """What `trawl ARGUMENTS` prints against this fleet."""
        well = (0, 1) if arguments[0] == "status" else (0,)  # 1: something needs attention, and here it does
        script = f"import sys; from cli.main import main; code = main({list(arguments)!r}); sys.exit(code not in {well})"
        return self.fleet.run(script)
