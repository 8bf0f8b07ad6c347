"""The keeper: a small process that runs the embedded server for all its users and stops it when the last one is gone.

    starter ─ locks keeper.lock, hands the lock down ─▶ keeper ─ starts ─▶ server (ends with the keeper)
    users   ─ hold users.lock (shared) as long as they live; the keeper tries it (exclusive) five times a second

It is started as `python -m redis_components.embedded FOLDER SERVER` and reports on its standard output, in one
line of JSON, that the server answers or why it does not.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path

from redis_components.errors import RedisUnavailable

from . import files
from .files import ServerFolder, ServerState
from .server import PortTaken, Server, ServerBinary, ServerConfig, probe

GRACE_S = 2.0  # the server outlives its last user by this, so that commands typed or scripted in a row share it
POLL_S = 0.2
RESTARTS = 5  # in a row, before the keeper gives up
LOG_BYTES = 1 << 20

logger = logging.getLogger(__name__)


class Keeper:
    """Runs one server as long as it has users."""

    def __init__(self, place: ServerFolder, binary: ServerBinary) -> None:
        self.place = place
        self.binary = binary
        # Opened once: should the folder be removed and made again, these users are still the ones we serve.
        self.users = files.unlocked(place.users)
        self.server: Server | None = None
        self.stop_requested = False

    def start(self) -> None:
        """Start the server and announce it. Raises RedisUnavailable when it does not start."""
        self.server = self._started()
        state = ServerState(
            url=self.server.config.url,
            pid=self.server.pid or 0,
            keeper=os.getpid(),
            binary=str(self.binary.path),
            version=str(self.binary),
            directory=str(self.server.config.directory),
        )
        self.place.announce(state)
        logger.info("%s runs with pid %d on port %d", self.binary, state.pid, self.server.config.port)

    def keep(self) -> None:
        """Return when the server is not needed any more, or cannot be kept up; it is stopped then."""
        try:
            self._stop(self._watch())
        except (RedisUnavailable, OSError) as exc:
            self._stop(str(exc))

    def _watch(self) -> str:
        """Keep the server up until there is a reason to stop it, and return that.

        Without users we hold `users.lock` only for an instant at a time, so that one can come within the grace time. At the end
        we go on holding it: a new user then waits until we are gone, and finds no server at all.
        """
        unused_since: float | None = None
        while not self.stop_requested:
            time.sleep(POLL_S)
            if self.server and not self.server.running:
                self._revive()
            if not files.try_lock(self.users, exclusive=True):
                unused_since = None
                continue
            unused_since = unused_since or time.monotonic()
            if time.monotonic() - unused_since > GRACE_S:
                return "it has no users"
            files.unlock(self.users)
        return "stop requested"

    def _started(self) -> Server:
        new_port = False
        for _ in range(5):
            access = self.place.access(new_port=new_port)
            directory = self.place.root / self.binary.family
            directory.mkdir(mode=0o700, exist_ok=True)
            config = ServerConfig(directory=directory, port=access.port, password=access.password)
            cut(config.log)
            server = Server(self.binary, config)
            try:
                server.start(timeout_s=None)
            except PortTaken as exc:
                logger.warning("%s", exc)
                new_port = True
            else:
                return server
        raise RedisUnavailable(f"five ports in a row were taken by other programs: see {self.place.log}, then try again")

    def _revive(self) -> None:
        """Start a server again that ended without a request, on the same port and with the data of its append-only file."""
        for attempt in range(1, RESTARTS + 1):
            logger.error("the server ended unasked; starting it again (%d of %d)", attempt, RESTARTS)
            try:
                self.start()
            except RedisUnavailable:
                if attempt == RESTARTS:
                    raise
                time.sleep(attempt * POLL_S)
            else:
                return

    def _stop(self, why: str) -> None:
        logger.info("stopping the server: %s", why)
        self.place.withdraw(keeper=os.getpid())
        if self.server:
            self.server.stop()


def keep(root: Path, binary: ServerBinary) -> int:
    """Detach, start the server, report, keep it. The lock on `keeper.lock` was inherited and is held until the process ends."""
    if os.fork():  # no child of the starter: it need not wait for us, and does not count us as its own
        os._exit(0)
    os.umask(0o077)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the starter may have blocked any of them
    logging.basicConfig(level=logging.INFO, format="%(asctime)s [%(process)d] %(message)s")  # standard error is keeper.log
    keeper = Keeper(ServerFolder(root=root), binary)

    def stop(_signal: int, _frame: object) -> None:
        keeper.stop_requested = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        keeper.start()
    except (RedisUnavailable, OSError) as exc:
        why = keeper.place.cannot_write(exc) if isinstance(exc, OSError) else exc
        logger.error("%s", why)
        report(error=str(why))
        return 1
    report(error=None)
    keeper.keep()
    return 0


def report(*, error: str | None) -> None:
    """Send the outcome to the starter, if it still reads, and close our end of its pipe."""
    try:
        sys.stdout.write(json.dumps({"error": error}) + "\n")
        sys.stdout.flush()
    except OSError:
        logger.warning("the process that started the keeper is gone already")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def cut(log: Path) -> None:
    """Empty a log that has grown beyond a megabyte."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        os.truncate(log, 0)


def main(root: Path, path: Path) -> int:
    """Keep the server program `path` running in the folder `root`."""
    binary = probe(path)
    if binary is None:
        report(error=f"{path} was a server a moment ago and is none now: try again")
        return 1
    return keep(root, binary)


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
