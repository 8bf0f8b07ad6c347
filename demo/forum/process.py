"""The forum as a child process: for tests, benchmarks and `make demo`.

with ForumProcess(seed=7, forums=2, threads=50) as forum:
    crawl(forum.url)
    forum.control(rate=0)
    compare(forum.truth())
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self
from urllib.parse import urlsplit

from redis_components.embedded.child_process import ChildProcess
from redis_components.errors import TrawlError
from workers.process.run_module import own_module

_START_S = 30.0
_STOP_S = 5.0
_ANSWER_S = 20.0
_POLL_S = 0.02
_SAID = 2_000  # bytes of the server's stderr that an error shows


class ForumFailed(TrawlError):
    """The demo forum did not start, or did not answer as expected; the message holds its output."""


class ForumSilent(ForumFailed):
    """The demo forum gave no usable answer."""


class ForumProcess:
    """Starts on entering or by `start()`, stops on leaving or by `stop()`; ends with the thread that starts it in any case.

    Arguments are those of `python -m demo.forum`; None leaves its default, but without `pace` there is no clock: the same seed is
    the same forum to the byte. After the start `url` and `pid` are set.
    """

    def __init__(
        self,
        *,
        seed: int = 1,
        forums: int | None = None,
        threads: int | None = None,
        comments: float | None = None,
        history_days: float | None = None,
        rate: float | None = None,
        pace: float = 0.0,
        port: int = 0,
    ) -> None:
        sizes = {"forums": forums, "threads": threads, "comments": comments, "history-days": history_days}
        given = {"seed": seed, **sizes, "rate": rate, "pace": pace, "port": port}
        self._options = [f"--{name}={value}" for name, value in given.items() if value is not None]
        self._errors: BinaryIO | None = None
        self._process: ChildProcess | None = None
        self.url = ""
        self.pid = 0

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Self:
        """Start the server and wait until it listens. Raises ForumFailed with its stderr where it does not."""
        # An unnamed file, not a pipe: the server cannot block on it, and nothing is left if this process is killed.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (stop() closes it)
        with tempfile.TemporaryDirectory(prefix="trawl-forum-") as folder:
            ready = Path(folder) / "ready.json"
            command = own_module("demo.forum", *self._options, f"--ready-file={ready}")
            try:
                self._process = ChildProcess(command, ends_with_us=True, stdout=subprocess.DEVNULL, stderr=self._errors)
                self._wait_for(ready)
            except BaseException:
                self.stop()
                raise
        return self

    def stop(self) -> int | None:
        """End the server and everything in its process group; returns its exit code, None if it does not run."""
        process, self._process = self._process, None
        if process is not None:
            process.stop(_STOP_S)
        if self._errors is not None:
            self._errors.close()
            self._errors = None
        return process.returncode if process else None

    def truth(self) -> dict[str, Any]:
        """Return `{"posts": {id: hash}, "comments": {id: hash}, "revision": events since the start, "pace": …}`, as of now,
        with the `published`, `edited` and `deleted` pieces since the start (`content.py`).
        """
        return self._ask("/truth")

    def stats(self) -> dict[str, Any]:
        """Return `{"served": {kind: {status: pages}}, "total": pages served, "pages": {kind: existing pages}, "posts": n,
        "comments": n, "revision": events since the start}`.
        """
        return self._ask("/stats")

    def control(self, **settings: float | str) -> dict[str, Any]:
        """Change some of the settings of `behaviour.Behaviour`; returns all of them.

        Raises ForumFailed with the forum's own words where it refuses.
        """
        return self._ask("/control", settings)

    def _wait_for(self, ready: Path) -> None:
        assert self._process is not None
        until = time.monotonic() + _START_S
        while not ready.exists():
            if self._process.poll() is not None:
                raise ForumFailed(f"the forum ended with code {self._process.returncode} at its start: {self._stderr_tail()}")
            if time.monotonic() > until:
                raise ForumFailed(f"the forum does not listen after {_START_S:g} s; its output: {self._stderr_tail()}")
            time.sleep(_POLL_S)
        listening = json.loads(ready.read_text("utf-8"))
        self.url, self.pid = listening["url"], listening["pid"]

    def _stderr_tail(self) -> str:
        """Return the end of the server's stderr."""
        if self._errors is None:
            return "(it does not run)"
        descriptor = self._errors.fileno()
        # pread: the server shares the file's position, and goes on writing there.
        written = os.pread(descriptor, _SAID, max(0, os.fstat(descriptor).st_size - _SAID))
        return written.decode("utf-8", "replace").strip() or "(nothing on stderr)"

    def _ask(self, path: str, body: object = None) -> dict[str, Any]:
        try:
            return ask(self.url, path, body)
        except ForumSilent as error:
            raise ForumFailed(f"{error}; the forum's output: {self._stderr_tail()}") from error


def ask(forum: str, path: str, body: object = None) -> dict[str, Any]:
    """Return the forum's JSON answer; with `body` from a POST request. Raises ForumFailed."""
    method = "GET" if body is None else "POST"
    connection = http.client.HTTPConnection(urlsplit(forum).netloc, timeout=_ANSWER_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        content: dict[str, Any] = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as broken:
        raise ForumSilent(f"{method} {forum}{path}: no usable answer ({broken!r})") from broken
    finally:
        connection.close()
    if response.status != 200:
        raise ForumFailed(f"{method} {forum}{path}: {response.status} {content.get('error', '')}")
    return content
