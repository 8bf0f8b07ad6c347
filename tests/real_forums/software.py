"""What a forum software has to offer so that a crawl of it can be compared with the truth in its own database."""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from tests.real_forums.written import written_by_sites_new
from tests.support.processes import wait_until


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic as a guest may see it. `text` is its opening post's text, without markup; `replies` without the opening post, None
    where the topic's pages do not say how many. `at`: when it was written, `2026-01-31 12:05` in UTC; None: not compared.
    """

    forum_id: str
    title: str
    text: str
    author: str | None
    replies: int | None
    at: str | None = None


@dataclass(frozen=True, kw_only=True)
class Comment:
    """A reply that a guest may see, `text` without markup. `parent` where the software keeps one; `at` as of a topic."""

    topic_id: str
    text: str
    author: str | None
    parent: str | None = None
    at: str | None = None


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Everything that a guest may see now, by the ids that the software shows. What is hidden or deleted is not in it."""

    topics: dict[str, Topic]
    comments: dict[str, Comment]

    @classmethod
    def from_json(cls, told: dict[str, dict[str, dict[str, Any]]]) -> Self:
        """From `{"topics": {id: fields}, "comments": {id: fields}}`, as the scripts in the software's environment print it."""
        return cls(
            topics={name: Topic(**fields) for name, fields in told["topics"].items()},
            comments={name: Comment(**fields) for name, fields in told["comments"].items()},
        )


class Software(ABC):
    """One forum software on loopback, with data of its own in `folder`.

    with Misago(folder) as forum:   # installs (once), starts
        forum.populate()
        ...crawl, compare with forum.truth()...
        forum.change()              # new, edited, deleted, hidden, moved
    """

    name: ClassVar[str]
    profile: ClassVar[str]
    """The profile of `forum_reader/profiles` that its site file names."""
    given: ClassVar[str | None] = None
    """What is behind `base_url` in the address from which `trawl sites new` writes the site file; None: it is not written so."""
    obeys_robots: ClassVar[bool] = True
    """False where its own robots.txt forbids what the profile reads: it is our forum, and we allow it."""
    starts_within_s: ClassVar[float] = 60
    unlisted: ClassVar[frozenset[str]] = frozenset()
    """What may come without its list saying so, "topic" or "comment": checks find it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base_url = ""
        self._processes: list[subprocess.Popen[bytes]] = []

    @abstractmethod
    def install(self) -> None:
        """Make its environment in the cache, unless it is there."""

    @abstractmethod
    def start(self) -> None:
        """Make an empty forum and serve it on a free port; sets `base_url`."""

    def world(self, verb: str) -> Any:
        """What happens in the forum, and what it tells then: by methods of these names, or by a script in `worlds/` that runs in
        the software's own environment.
        """
        return getattr(self, f"_{verb}")()

    def populate(self) -> None:
        """A few hundred topics and replies through its own models; also edited, deleted, hidden and pinned ones."""
        self.world("populate")

    def change(self) -> None:
        """New topics and replies, edits, deletions and hidings, of topics that were already crawled."""
        self.world("change")

    def truth(self) -> Truth:
        """What a guest may see, from its own database."""
        return Truth.from_json(self.world("truth"))

    def forums(self) -> list[str]:
        """The ids of its forums, as a site file names them."""
        names: list[str] = self.world("forums")
        return names

    def site_file(self) -> str:
        """The TOML of its site file, as `trawl sites new` writes it or the profile as it is, but without politeness towards
        ourselves.
        """
        if self.given is not None:
            return written_by_sites_new(self.base_url + self.given, self.folder)
        names = ", ".join(f'"{forum}"' for forum in self.forums())
        return (
            f'profile = "{self.profile}"\nbase_url = "{self.base_url}"\nforums = [{names}]\n'
            f"[politeness]\nrate = 0\nconcurrency = 8\nobey_robots = {str(self.obeys_robots).lower()}\n"
        )

    def launch(self, command: list[str | Path], *, environment: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        """A server process of it, ended at the end; what it says is in `log()`."""
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=environment, cwd=cwd or self.folder, stdout=log, stderr=log, start_new_session=True
            )
        self._processes.append(process)

    def wait_until_it_answers(self, path: str = "/") -> None:
        """Until the server answers a request, whatever it answers."""
        wait_until(lambda: self._answers(path), lambda: f"{self.name} answers; its log:\n{self.log()}", self.starts_within_s)

    def log(self) -> str:
        """The end of what its servers said."""
        path = self.folder / "server.log"
        return path.read_text(errors="replace")[-5000:] if path.exists() else ""

    def stop(self) -> None:
        """End its processes."""
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)  # PHP's server leaves its workers
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _answers(self, path: str) -> bool:
        for process in self._processes:
            if process.poll() is not None:
                raise RuntimeError(f"it ended with exit code {process.returncode}")
        try:
            with urllib.request.urlopen(f"{self.base_url}{path}", timeout=30):
                return True
        except urllib.error.HTTPError as answer:
            return answer.code < 500

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.install()
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
