"""Servers that stand in for one another: a Sentinel set-up and a Cluster, private, on free ports, with passwords.

    with SentinelGroup() as group:      # a primary, a replica, three sentinels
        client = get_redis(url=group.url)
        group.primary().kill()          # SIGKILL; the replica takes over within seconds

`ClusterGroup` has the same face: three primaries, and a replica of the one that serves `{job}`.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from redis_components.embedded.die_with_parent import tied
from redis_components.embedded.files import is_free
from redis_components.embedded.server import choose
from tests.support.processes import wait_until

PASSWORD = "groups"
SERVICE = "main"
TAG = "{job}"
SERVER = (
    f"requirepass {PASSWORD}",
    f"masterauth {PASSWORD}",
    "repl-ping-replica-period 1",
    "repl-diskless-sync-delay 0",  # s; five, else, for more replicas to come
)
BUS = 10_000  # a cluster node listens on its port + this, too
PORTS = range(16_400, 22_700)  # + BUS it is still below what the kernel hands out


def port() -> int:
    """A port that nothing listens on, nor on that of the cluster's bus."""
    return next(number for number in random.sample(PORTS, 200) if is_free(number) and is_free(number + BUS))


class Node:
    """One server process. It ends with the thread that starts it."""

    def __init__(self, folder: Path, *lines: str, sentinel: bool = False) -> None:
        self.port = port()
        self._folder = folder / str(self.port)
        self._folder.mkdir()
        own = [f"port {self.port}", "bind 127.0.0.1", "dir .", *([] if sentinel else ['save ""'])]
        (self._folder / "server.conf").write_text("\n".join([*own, *lines]) + "\n")
        self._arguments = ["server.conf", *(["--sentinel"] if sentinel else [])]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with (self._folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                tied(str(choose().path), *self._arguments), cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        return self

    def kill(self) -> None:
        """SIGKILL."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, password=PASSWORD, decode_responses=True, retry=None)

    def wait(self, what: str, happened: Callable[[redis.Redis], Any]) -> Any:
        """Wait until it is so, by this node's own word."""
        with self.client() as client:
            return wait_until(lambda: happened(client), lambda: f"{what}\n{self.log()[-2000:]}", 60)

    def log(self) -> str:
        return (self._folder / "server.log").read_text(errors="replace")


class Group:
    """What both have in common."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="trawl-test-group-")))

    def node(self, *lines: str, sentinel: bool = False) -> Node:
        """One more server, started, which ends with the group."""
        node = Node(self._folder, *lines, sentinel=sentinel)
        self._stack.callback(node.kill)
        return node.start()

    def start(self) -> None:
        raise NotImplementedError

    def primary(self) -> Node:
        """The server with the keys of TAG."""
        raise NotImplementedError

    def replica(self) -> Node:
        """The server that follows it."""
        raise NotImplementedError

    def fail_over(self, meanwhile: Callable[[], object]) -> None:
        """Let the replica fall behind by what is written `meanwhile`, and kill the primary."""
        primary, replica = self.primary(), self.replica()
        with primary.client() as one, replica.client() as two:
            two.config_set("masterauth", "wrong")  # it cannot come back to its primary
            one.execute_command("CLIENT KILL TYPE replica")
        meanwhile()
        primary.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()


class SentinelGroup(Group):
    """A primary, a replica, and sentinels of which a majority must agree: three need some five seconds for an election, one needs
    one.
    """

    def __init__(self, *, sentinels: int = 3) -> None:
        super().__init__()
        self._wanted = sentinels

    def start(self) -> None:
        one = self.node(*SERVER)
        two = self.node(*SERVER, f"replicaof 127.0.0.1 {one.port}")
        self.servers = [one, two]
        two.wait("the replica follows", lambda client: client.info("replication")["master_link_status"] == "up")
        self.sentinels = [
            self.node(
                f"requirepass {PASSWORD}",
                f"sentinel monitor {SERVICE} 127.0.0.1 {one.port} {self._wanted // 2 + 1}",
                f"sentinel auth-pass {SERVICE} {PASSWORD}",
                f"sentinel down-after-milliseconds {SERVICE} 700",
                f"sentinel failover-timeout {SERVICE} 700",
                sentinel=True,
            )
            for _ in range(self._wanted)
        ]
        for sentinel in self.sentinels:
            sentinel.wait("the sentinels know each other and the replica", self._knows_all)

    def _knows_all(self, client: redis.Redis) -> bool:
        state = client.sentinel_master(SERVICE)
        return bool((state["num-other-sentinels"], state["num-slaves"]) == (self._wanted - 1, 1))

    @property
    def url(self) -> str:
        """With a sentinel that is not there before the others."""
        nodes = ",".join(f"127.0.0.1:{number}" for number in (port(), *(node.port for node in self.sentinels)))
        return f"redis+sentinel://:{PASSWORD}@{nodes}/{SERVICE}/0?sentinel_password={PASSWORD}"

    def primary(self) -> Node:
        return self.servers[0]

    def replica(self) -> Node:
        return self.servers[1]


class ClusterGroup(Group):
    """Three primaries with a third of the slots each, and a replica of the one that has the slot of TAG."""

    def start(self) -> None:
        lines = (
            *SERVER,
            "cluster-enabled yes",
            "cluster-node-timeout 1000",
            "cluster-replica-validity-factor 0",
        )
        self.servers = [self.node(*lines) for _ in range(4)]
        clients = [self._stack.enter_context(node.client()) for node in self.servers]
        ids = [str(node.wait("it answers", lambda client: client.execute_command("CLUSTER MYID"))) for node in self.servers]
        for number, client in enumerate(clients[:3]):
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            client.execute_command("CLUSTER ADDSLOTS", *range(number * 5462, min((number + 1) * 5462, 16_384)))
        for number, client in enumerate(clients[:3]):
            for other in self.servers[number + 1 :]:
                client.execute_command("CLUSTER MEET", "127.0.0.1", other.port)
        home = clients[0].execute_command("CLUSTER KEYSLOT", TAG) // 5462
        self.servers[3].wait("it has met the others", lambda client: _knows(client, *ids) and client.info("server"))
        clients[3].execute_command("CLUSTER REPLICATE", ids[home])
        self.servers[3].wait("the replica follows", lambda client: client.info("replication").get("master_link_status") == "up")
        for node in self.servers:
            node.wait("the cluster is whole", lambda client: _knows(client, *ids) and _is_whole(client))

    @property
    def url(self) -> str:
        """With a node that is not there before the others."""
        return f"redis+cluster://:{PASSWORD}@" + ",".join(f"127.0.0.1:{n}" for n in (port(), *(s.port for s in self.servers)))

    def primary(self) -> Node:
        with self.servers[3].client() as client:
            home = client.info("replication")["master_port"]
        return next(node for node in self.servers if node.port == home)

    def replica(self) -> Node:
        return self.servers[3]


def _knows(client: redis.Redis, *ids: str) -> bool:
    known = str(client.execute_command("CLUSTER NODES"))
    return all(one in known for one in ids)


def _is_whole(client: redis.Redis) -> bool:
    return client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"
