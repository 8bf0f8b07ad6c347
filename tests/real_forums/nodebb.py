"""NodeBB: Node.js, its read API, Redis. From npm, whose newest NodeBB is 1.4.0: the fields of the API are those of today."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, ClassVar

import redis

from tests.real_forums.environment import bare_environment, free_port, npm_environment, run
from tests.real_forums.software import Comment, Software, Topic, Truth
from tests.support.redis_server import RedisServer

WORLDS = Path(__file__).parent / "worlds"
_OFF = ("emoji-one", "emoji-extended", "spam-be-gone", "dbsearch", "mentions")
"""Plugins of its that are on by default and ask other hosts for something, or that nothing here needs."""


class NodeBB(Software):
    """A NodeBB on a Redis of its own."""

    name: ClassVar[str] = "nodebb"
    profile: ClassVar[str] = "nodebb-v2"
    starts_within_s: ClassVar[float] = 120
    requirements: ClassVar[tuple[str, ...]] = ("nodebb@1.4.0",)

    def install(self) -> None:
        self._environment = npm_environment(self.name, self.requirements)

    def start(self) -> None:
        self._redis = RedisServer().start()
        self._client: redis.Redis = self._redis.client(decode_responses=True)
        self._folder = self._copy()
        self.base_url = f"http://127.0.0.1:{free_port()}"
        setup = {
            "url": self.base_url,
            "secret": "only on loopback, for a test",
            "database": "redis",
            "redis:host": "127.0.0.1",
            "redis:port": self._redis.port,
            "redis:password": self._redis.password,
            "redis:database": 0,
            "admin:username": "Boss",
            "admin:password": "Secret.123456",
            "admin:password:confirm": "Secret.123456",
            "admin:email": "boss@example.com",
        }
        run(["node", "app.js", "--setup", json.dumps(setup)], environment=bare_environment(), cwd=self._folder)
        self._client.zrem("plugins:active", *(f"nodebb-plugin-{name}" for name in _OFF))
        self._serve()

    def stop(self) -> None:
        super().stop()
        if hasattr(self, "_redis"):
            self._redis.close()

    def world(self, verb: str) -> None:
        run(["node", WORLDS / "nodebb_world.js", self._folder, verb], environment=bare_environment(), cwd=self._folder)

    def change(self) -> None:
        """The server is started afresh: it keeps posts in memory, and does not hear of what another process changes."""
        super().stop()
        self._processes.clear()
        self.world("change")
        self._serve()

    def truth(self) -> Truth:
        """From NodeBB's Redis: the hashes of topics and posts."""
        topics, comments = {}, {}
        for tid in self._members("topics:tid"):
            topic = self._record(f"topic:{tid}")
            if topic.get("deleted") == "1":
                continue
            topics[tid] = Topic(
                forum_id=topic["cid"],
                title=topic["title"],
                text=_plain(self._record(f"post:{topic['mainPid']}")["content"]),
                author=self._writer(topic["uid"]),
                replies=int(topic["postcount"]) - 1,
            )
            for pid in self._members(f"tid:{tid}:posts"):
                post = self._record(f"post:{pid}")
                if post.get("deleted") != "1":
                    comments[pid] = Comment(
                        topic_id=tid,
                        text=_plain(post["content"]),
                        author=self._writer(post["uid"]),
                        parent=None if post.get("toPid") == topic["mainPid"] else post.get("toPid"),
                    )
        return Truth(topics=topics, comments=comments)

    def forums(self) -> list[str]:
        return self._members("categories:cid")

    def _copy(self) -> Path:
        """A folder of its own, since it writes into it; its dependencies stay in the cache."""
        folder = self.folder / "nodebb"
        shutil.copytree(self._environment / "node_modules" / "nodebb", folder, ignore=shutil.ignore_patterns("node_modules"))
        (folder / "node_modules").symlink_to(self._environment / "node_modules")
        for name in ("sounds", "category", "profile", "files", "system"):  # npm does not pack empty folders
            (folder / "public" / "uploads" / name).mkdir(parents=True, exist_ok=True)
        return folder

    def _serve(self) -> None:
        self.launch(["node", "app.js"], environment=bare_environment(), cwd=self._folder)
        self.wait_until_it_answers("/api/categories")

    def _members(self, key: str) -> list[str]:
        members: Any = self._client.zrange(key, 0, -1)
        return list(members)

    def _record(self, key: str) -> dict[str, str]:
        record: Any = self._client.hgetall(key)
        return dict(record)

    def _writer(self, uid: str) -> str | None:
        return self._record(f"user:{uid}").get("username")


def _plain(markdown: str) -> str:
    """Text of the little Markdown that `nodebb_world.js` writes."""
    return " ".join(markdown.replace("**", "").split())
