"""Python commands of tests, started in a tenth of the time: by fork, from a process that has imported what they import.

`Popen` and `run` are `subprocess`'s. Two thirds of what a short crawl costs are imports, the same for each. A command `python -m
MODULE` of `FAMILIES`, `celery`, or what `own_module` makes of one is forked from a process of its family
(`tests.support.warm_process`) and is a child of the test's process, with the environment, folder, files and session that were
asked for; so is a script, `-c`, where the test names the family. /proc shows its command line (arguments with blanks are not
told apart) and its environment. With `startup`, a folder with a `sitecustomize`, the family is one that has begun with it: a test
that changes what every process imports starts one process cold, and the others from that one. Everything else starts as ever, and
with COLD_STARTS=1 so do these: `make test-all` does that.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE, TimeoutExpired  # noqa: F401 - so that this module can stand for `subprocess`
from typing import Any

from redis_components.embedded.child_process import ChildProcess
from workers.process import run_module

try:
    from forums.application import preload
except ModuleNotFoundError:  # in a family that cannot import it: `Popen(startup=...)`

    def preload() -> tuple[str, ...]:
        return ()


ROOT = Path(__file__).resolve().parents[2]
CELERY = str(Path(sys.executable).with_name("celery"))
OWN_MODULE = run_module.__file__
LENGTH = struct.Struct("!I")
MAY_DIFFER = {"PYTHONPATH", "PYTHONUNBUFFERED"}
ROOM_FOR_ARGUMENTS, ROOM_FOR_VARIABLES = 4_000, 60_000
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def _in(package: str, names: str) -> tuple[str, ...]:
    return tuple(f"{package}.{name}" for name in names.split())


SCRAPY = (  # with what a crawler looks up by the names in its settings
    *_in("scrapy", "cmdline crawler logformatter exporters robotstxt shell utils.engine"),
    *_in("scrapy.core.downloader.handlers", "datauri file ftp http11 s3"),
    *_in(
        "scrapy.commands", "bench check crawl edit fetch genspider list parse runspider settings shell startproject version view"
    ),
    *_in("scrapy.downloadermiddlewares", "cookies defaultheaders downloadtimeout httpauth httpcache httpcompression httpproxy"),
    *_in("scrapy.downloadermiddlewares", "offsite retry robotstxt stats useragent"),
    *_in("scrapy.extensions", "closespider corestats logcount logstats memdebug memusage spiderstate throttle"),
    *_in("scrapy.spidermiddlewares", "depth metacopy start urllength"),
)
WORKERS = (
    *_in("celery", "bin.celery bin.worker bin.beat apps.worker apps.beat app.log app.amqp app.control app.events backends.redis"),
    *_in("celery", "concurrency.prefork fixups.django loaders.app worker.autoscale worker.components worker.strategy"),
    *_in("celery.worker.consumer", "agent connection control delayed_delivery events gossip heart mingle tasks"),
    *_in("kombu", "pidbox transport.redis"),
)
FRONTIER = _in("redis_components", "scheduler pipelines spiders stats")
FORUMS = ("forums.spiders.forum_list", "forums.spiders.forum_detail", "forums.breaker.middleware")
FLEET = (  # without workers.node.host: it makes memory that processes share
    *_in("fleet_operations", "deploy.deploy deploy.rehearsal consumers.run_files consumers.declared"),
    *_in("fleet_operations", "overview.problems overview.reader"),
    *_in("workers", "environment.variables raw_pages.store fleet.reconcile fleet.autoscale fleet.roll crawler.orders"),
    *_in("fleet_operations.jobs", "jobs spider_list groups run_steps runs verdict"),
    *_in("workers", "logs.slot_log logs.worker_log node.heartbeat node.health"),
    *_in("workers.process", "config_digest forked heartbeat pipes run_recorder start_checks stat_metrics"),
    *_in("workers.state", "beats dead_messages history quarantine rolls"),
    *_in("workers.supervision", "launcher slot_history supervisor"),
)
CRAWLS = (*SCRAPY, *FRONTIER, *FORUMS, *FLEET, "lxml.html", "itemadapter")
PROGRAMS = (
    *(*WORKERS, *_in("cli.views", "fleet_screen fleet_tables options output tables"), "typer", "rich.console"),
    *("forums.overview.model", "forums.storage", "forums.writer.store", "redis_components.items.stream"),
    *FLEET,
    *preload(),
)
# Scrapy first: for each of its deprecated classes it looks through all that is loaded.
MODULES = (*CRAWLS, *PROGRAMS, "aiohttp.web", "jinja2", "demo.forum.server", "tests.support.forked_crawlers")
FAMILIES = {  # what a process has imported from which these modules are started; nothing that reads the environment
    **dict.fromkeys(("scrapy.cmdline", "tests.support.scrapy_command", "tests.support.hook_spiders", "workers.crawler"), MODULES),
    "workers.crawler.warm_parent": MODULES,
    **dict.fromkeys(
        ("fleet_operations.deploy.check_service", "fleet_operations.deploy.replay", "fleet_operations.consumers.member_files"),
        MODULES,
    ),
    "fleet_operations.jobs.spider_list": MODULES,
    "forums.sites.isolated": MODULES,
    **dict.fromkeys(("cli.main", "monitoring.exporter", "storage", "tests.support.link_site"), MODULES),
    "celery": MODULES,  # a worker forks its crawlers: `tests.support.forked_crawlers`
}


class _Family:
    """The process that the commands of one family are forked from."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self._socket, self.process = connection, process

    @classmethod
    def of(cls, modules: Sequence[str], startup: str) -> _Family:
        """A new process that imports them, after the `sitecustomize` in `startup`."""
        here, there = socket.socketpair()
        with there:
            command = [
                sys.executable,
                "-m",
                "tests.support.warm_process",
                str(there.fileno()),
                *modules,
                "-" * ROOM_FOR_ARGUMENTS,
            ]
            kept = ("PYTHON", "LANG", "LC_", "PATH", "HOME", "TMP", "SSL", "VIRTUAL_ENV")
            environment = {name: value for name, value in os.environ.items() if name.startswith(kept) and name != "PYTHONPATH"}
            environment["ROOM"] = "-" * ROOM_FOR_VARIABLES
            if startup:
                environment["PYTHONPATH"] = startup
            process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, pass_fds=[there.fileno()])
        return cls(here, process)

    def start(self, request: dict[str, object], files: Sequence[int]) -> int:
        """The pid of a new child of this process."""
        said = json.dumps(request).encode()
        socket.send_fds(self._socket, [LENGTH.pack(len(said))], files)
        self._socket.sendall(said)
        pid = self._socket.recv(LENGTH.size, socket.MSG_WAITALL)
        if len(pid) != LENGTH.size:
            raise OSError(f"the process that starts others has ended: {self.process and self.process.wait(10)}")
        return int(LENGTH.unpack(pid)[0])

    def close(self) -> None:
        self._socket.close()
        if self.process:
            self.process.wait(10)


class _Families:
    def __init__(self) -> None:
        self._of: dict[tuple[tuple[str, ...], str], _Family] = {}
        self._lock = threading.Lock()
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def pids(self) -> set[int]:
        return {family.process.pid for family in self._of.values() if family.process}

    def take_from(self, connection: socket.socket) -> None:
        self._of[MODULES, ""] = _Family(connection)

    def start(self, name: str, request: dict[str, object], files: Sequence[int], startup: str) -> int:
        modules = tuple(one for one in FAMILIES[name] if not (startup and one.startswith("forums")))
        with self._lock:
            if (modules, startup) not in self._of:
                self._of[modules, startup] = _Family.of(modules, startup)
                atexit.register(self._of[modules, startup].close)
            self._prctl(SUBREAPER, 1, 0, 0, 0)  # an orphan among our descendants, which the new process is for a moment, is ours
            try:
                return self._of[modules, startup].start(request, files)
            finally:
                self._prctl(SUBREAPER, 0, 0, 0, 0)


_families = _Families()


def keepers() -> set[int]:
    """The processes that commands are forked from: they stay to the end of the session."""
    return _families.pids()


def fork_from(connection: socket.socket) -> None:
    """From now on commands are forked from the process there: this one is itself forked, and has a program's state."""
    _families.take_from(connection)


def _replaces_imports(paths: str) -> bool:
    """Whether a folder of PYTHONPATH holds what a process of a family has imported from elsewhere, or looked for."""
    names = {"opentelemetry", "redis"} | {module.partition(".")[0] for modules in FAMILIES.values() for module in modules}
    folders = {Path(path) for path in filter(None, paths.split(os.pathsep))} - {ROOT}
    return any((folder / name).exists() or (folder / f"{name}.py").exists() for folder in folders for name in names)


def _forkable(command: object, environment: Mapping[str, str] | None, family: str) -> dict[str, object] | None:
    """What is to be run by a command that can be forked."""
    if not isinstance(command, list) or os.environ.get("COLD_STARTS") or sys.platform != "linux":
        return None
    words = command[:]
    if words[:1] == [CELERY]:
        words[:1] = [sys.executable, "-m", "celery"]
    if words[:1] != [sys.executable]:
        return None
    warnings, rest = (words[2:3], words[3:]) if words[1:2] == ["-W"] else ([], words[1:])
    if rest[:2] == ["-P", OWN_MODULE]:
        family, rest = family or rest[2], ["-m", "workers.process.run_module", *rest[2:]]
    if len(rest) < 2 or rest[0] not in ("-m", "-c") or (family or rest[1]) not in FAMILIES:
        return None
    ours, theirs = os.environ, os.environ if environment is None else environment
    of_python = {name for name in {*ours, *theirs} if name.startswith("PYTHON")} - MAY_DIFFER
    same = all(ours.get(name) == theirs.get(name) for name in of_python)
    if not same or "LD_PRELOAD" in theirs or _replaces_imports(theirs.get("PYTHONPATH", "")):
        return None
    return {
        "command": command,
        "family": family or rest[1],
        "warnings": warnings,
        "how": rest[0],
        "what": rest[1],
        "arguments": rest[2:],
        "environment": dict(theirs),
    }


class ForkingPopen(subprocess.Popen[Any]):
    """`subprocess.Popen` with commands that `fork` may start in place of executing them."""

    def fork(self, asked: Mapping[str, Any], files: Sequence[int]) -> int | None:
        """The pid of the new process; None where the command is to be executed. `asked` is what subprocess gives to
        `_execute_child`, `files` what the command gets as 0, 1 and 2.
        """
        raise NotImplementedError

    def _execute_child(self, *given: Any) -> None:
        names = subprocess.Popen._execute_child.__code__.co_varnames[1 : len(given) + 1]  # type: ignore[attr-defined]
        asked = dict(zip(names, given, strict=True))
        files = [asked[name] if asked[name] != -1 else own for own, name in enumerate(("p2cread", "c2pwrite", "errwrite"))]
        pid = self.fork(asked, files)
        if pid is None:
            subprocess.Popen._execute_child(self, *given)  # type: ignore[attr-defined]
            return
        self.pid = pid
        self._child_created = True
        self._close_pipe_fds(*(asked[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")))  # type: ignore[attr-defined]


def fork_children(fork: Callable[[Mapping[str, Any], Sequence[int]], int | None]) -> None:
    """From now on each `ChildProcess` of the product is started by `fork`, with what `ForkingPopen.fork` gets, where that can."""
    methods = {"fork": lambda _, asked, files: fork(asked, files), "_execute_child": ForkingPopen._execute_child}
    for name, method in methods.items():
        setattr(ChildProcess, name, method)


class Popen(ForkingPopen):
    """`subprocess.Popen`, which forks what it can; `family` is for `-m` with a module of another name, and for `-c`."""

    def __init__(self, command: Sequence[str], *, family: str = "", startup: str = "", **options: Any) -> None:
        self._family, self._startup = family, startup
        super().__init__(command, **options)

    def fork(self, asked: Mapping[str, Any], files: Sequence[int]) -> int | None:
        return forked(asked, files, self._family, self._startup)


def forked(asked: Mapping[str, Any], files: Sequence[int], family: str, startup: str = "", **more: object) -> int | None:
    """The pid of a new child of this process, which is told `more`; None where the command is to be executed."""
    request = _forkable(asked["args"], asked["env"], family)
    if request is None or not asked["close_fds"] or any(asked[name] for name in ("preexec_fn", "shell", "executable")):
        return None
    passed = list(asked["pass_fds"])
    request |= {"folder": os.fspath(asked["cwd"] or Path.cwd()), "new_session": bool(asked["start_new_session"])}
    return _families.start(str(request["family"]), {**request, "passed": passed, **more}, [*files, *passed], startup)


def run(
    command: Sequence[str],
    *,
    input: str | bytes | None = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, which forks what it can."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
