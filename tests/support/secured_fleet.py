"""The fleet that crawls the demo's forum as `docs/security.md` says: TLS, a Redis user for each process, signed messages."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.forum.process import ForumProcess
from redis_components.embedded.server import ServerConfig
from tests.support.certificates import Certificates
from tests.support.forum_fleet import ForumFleet
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, free_port

NAMESPACE = "secured"


@dataclass(frozen=True, kw_only=True)
class TlsConfig(ServerConfig):
    """With a second port, on which everybody shows a certificate of the authority."""

    tls_port: int
    certificates: Certificates

    def write(self) -> Path:
        path = super().write()
        own = self.certificates
        lines = (f"tls-port {self.tls_port}", f"tls-cert-file {own.server}", f"tls-key-file {own.server_key}")
        with path.open("a", encoding="utf-8") as file:
            file.write("\n".join([*lines, f"tls-ca-cert-file {own.ca}", "tls-auth-clients yes", ""]))
        return path


class TlsRedis(RedisServer):
    """TLS is the server's own where it was built with it (TRAWL_REDIS_BIN), else a proxy's: the bundled one has none. The port
    without TLS is for the judge only.
    """

    def __init__(self, folder: Path, *, aof: bool) -> None:
        self.certificates = Certificates(folder)
        self.tls_port = free_port()
        self._proxy: Proxy | None = None
        super().__init__(aof=aof)

    def start(self) -> RedisServer:
        super().start()
        if not self._has_tls and self._proxy is None:
            self._proxy = Proxy(self.port, tls=self.certificates.for_a_server()).__enter__()
            self.tls_port = self._proxy.port
        return self

    def close(self) -> None:
        if self._proxy is not None:
            self._proxy.__exit__(None, None, None)
        super().close()

    @property
    def _has_tls(self) -> bool:
        return b"SSL_CTX_new" in self.binary.path.read_bytes()

    def _config(self, port: int) -> ServerConfig:
        if not self._has_tls:
            return super()._config(port)
        password = secrets.token_hex(16)
        more: dict[str, Any] = {"tls_port": self.tls_port, "certificates": self.certificates}
        return TlsConfig(directory=self.directory, port=port, password=password, aof=self._aof, **more)


class SecuredForumFleet(ForumFleet):
    """Workers are the user `worker`, beats the user `beat` of `trawl config acl`; keys for signing come from a file. This
    process, which judges, has the namespace and the keys, too.
    """

    def __init__(self, folder: Path, forum: ForumProcess, **options: Any) -> None:
        self._patch = pytest.MonkeyPatch()
        self.signing_keys = folder / "signing.key"
        self.signing_keys.write_text(secrets.token_hex(32))
        self.signing_keys.chmod(0o600)
        self._patch.setenv("TRAWL_NAMESPACE", NAMESPACE)
        self._patch.setenv("TRAWL_SIGNING_KEY_FILE", str(self.signing_keys))
        self._passwords: dict[str, str] = {}
        super().__init__(folder, forum, **options)

    def new_redis(self, *, aof: bool) -> RedisServer:
        return TlsRedis(self.folder, aof=aof)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._patch.undo()

    def start_node(self, name: str) -> None:
        self._make_users()
        super().start_node(name)

    def environment_of(self, kind: str) -> dict[str, str]:
        return {**self.environment, "TRAWL_REDIS_URL": self.url_of(kind)}

    def url_of(self, user: str) -> str:
        """What a process of this user has as TRAWL_REDIS_URL."""
        server = self.redis
        assert isinstance(server, TlsRedis)
        login = f"{user}:{self._passwords[user]}"
        return f"rediss://{login}@127.0.0.1:{server.tls_port}/0?{server.certificates.options()}"

    def denied(self) -> list[tuple[str, str, str]]:
        """What Redis has refused: user, reason, object."""
        return [(str(one["username"]), str(one["reason"]), str(one["object"])) for one in self.client.acl_log()]

    def forge(self, message: bytes) -> None:
        """What a writer of Redis puts into the queue of tasks."""
        self.client.lpush(f"{NAMESPACE}:control", message)

    def refused_messages(self) -> list[bytes]:
        return list(self.client.lrange(self.keys.dead_messages(), 0, -1))

    def _make_users(self) -> None:
        """With the command that an operator has, once."""
        if self._passwords:
            return
        file = self.folder / "users"
        said = self.run(f"import sys; from cli.main import main; sys.exit(main(['config', 'acl', '--passwords', {str(file)!r}]))")
        for line in said.splitlines():
            self.client.execute_command(*line.split())
        self._passwords = dict(line.split() for line in file.read_text().splitlines())
