"""The process that `tests.support.warm_start` forks commands from: `python -m tests.support.warm_process DESCRIPTOR MODULE...`

It imports the modules and reads requests from the socket DESCRIPTOR. A command becomes a child of the test's process. It ends
when that one does.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import platform
import runpy
import signal
import socket
import sys
import threading
import time
import warnings
from pathlib import Path
from types import ModuleType

from redis_components.embedded.die_with_parent import PR_SET_PDEATHSIG
from tests.support.warm_start import LENGTH
from workers.node.worker_setup import load_ahead

MOST_FILES = 16
PR_GET_TID_ADDRESS = 40
SYS_CLONE = 56  # of x86_64
LIKE_FORK = signal.SIGCHLD | 0x8000 | 0x0100_0000 | 0x0020_0000  # CLONE_PARENT, CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID
LARGE = 2 << 20  # bytes of a large page
MADV_COLLAPSE = 25
ABOVE = 512  # no file of this process has such a number


def next_request(tests: socket.socket) -> tuple[dict[str, object], list[int]]:
    """What the test wants, and files: 0, 1 and 2 there, then those that are `passed`. Ends this process where the test's has
    ended.
    """
    head, files, _, _ = socket.recv_fds(tests, LENGTH.size, MOST_FILES, socket.MSG_WAITALL)
    if len(head) != LENGTH.size:
        os._exit(0)
    (length,) = LENGTH.unpack(head)
    return json.loads(tests.recv(length, socket.MSG_WAITALL)), files


def in_new_process(tests: socket.socket) -> dict[str, object]:
    """Fork for each request; returns in the new process, with what it shall do."""
    while True:
        request, files = next_request(tests)
        # One that ends with its parent ends with the thread that has started this process: an orphan has the main one.
        place = 0 if request.get("parent") else _place_of_id()
        pid = _sibling(place) if place else _orphan()
        if not pid:
            kept = [fcntl.fcntl(file, fcntl.F_DUPFD, ABOVE) for file in files]
            for file in (tests.detach(), *files):
                os.close(file)
            passed = request["passed"]
            assert isinstance(passed, list)
            for file, number in zip(kept, [0, 1, 2, *passed], strict=True):
                os.dup2(file, number)
                os.close(file)
            return request
        tests.sendall(LENGTH.pack(pid))
        for file in files:
            os.close(file)


def _orphan() -> int:
    """As `os.fork`; the new process is the child of a process that ends at once, then of the test's."""
    adopted, adopt = os.pipe()
    named, name = os.pipe()
    between = os.fork()
    if not between:
        if pid := os.fork():
            os.write(name, LENGTH.pack(pid))
            os._exit(0)
        os.close(adopt)
        os.read(adopted, 1)  # ends when `adopt` is closed everywhere: its parent is the test's process now
        for file in (adopted, named, name):
            os.close(file)
        return 0
    os.waitpid(between, 0)
    (pid,) = LENGTH.unpack(os.read(named, LENGTH.size))
    for file in (adopted, adopt, named, name):
        os.close(file)
    return int(pid)


def _sibling(place: int) -> int:
    """As `os.fork`; the new process is a child of this one's parent, which is the test's. A fork copies the tables of 160 MB of
    memory, for 10 ms of CPU: this one is made in place of two.
    """
    python = ctypes.pythonapi  # it keeps the lock of the interpreter, as `os.fork` does
    python.PyOS_BeforeFork()
    pid = int(ctypes.PyDLL(None).syscall(*map(ctypes.c_long, (SYS_CLONE, LIKE_FORK, 0, 0, place, 0))))
    if pid:
        python.PyOS_AfterFork_Parent()
    else:
        python.PyOS_AfterFork_Child()
    if pid < 0:
        raise OSError("clone has failed")
    return pid


def _place_of_id() -> int:
    """Where the C library keeps the id of this thread, which a fork writes anew; 0 where that is not known."""
    place = ctypes.c_void_p()
    if platform.machine() != "x86_64" or ctypes.CDLL(None).prctl(PR_GET_TID_ADDRESS, ctypes.byref(place), 0, 0, 0):
        return 0
    return place.value or 0


def show(command: list[str], environment: dict[str, str], *, apart: bool) -> None:
    """In /proc too this process has the command's line and variables; the family's are long enough to be written over. `apart`:
    the arguments are told apart, and empty ones follow.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    first, end, first_variable, last = (int(field) for field in fields[45:49])  # arg_start to env_end, fields 48 to 51
    line = ("\0" if apart else " ").join(command).encode()[: end - first - 2]
    # the last byte is not 0: Linux takes the line for one that the process has set, and ends it at the first 0
    ctypes.memmove(first, line.ljust(end - first - 1, b"\0") + (b"\0" if apart else b"x"), end - first)
    variables = b"".join(f"{name}={value}\0".encode() for name, value in environment.items())
    if len(variables) > last - first_variable:
        raise SystemExit("the environment is larger than the family's")
    ctypes.memmove(first_variable, variables.ljust(last - first_variable, b"\0"), last - first_variable)


def _in_large_pages() -> None:
    """Have the kernel put this process's memory into pages of 2 MB where it can: a fork copies a table of 4 KB pages, a quarter
    of its time here, and one entry for each of these.
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        place, rights, *_, inode = line.split()[:5]
        first, end = (int(edge, 16) for edge in place.split("-"))
        first, end = -(-first // LARGE) * LARGE, end // LARGE * LARGE
        if rights == "rw-p" and inode == "0" and first < end:
            ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), MADV_COLLAPSE)


def become(request: dict[str, object], paths: list[str]) -> None:
    """What the interpreter does before it runs `-m MODULE` or `-c SCRIPT`."""
    if request["new_session"]:
        os.setsid()
    if parent := request.get("parent"):  # it ends with that one
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    environment, command = request["environment"], request["command"]
    assert isinstance(environment, dict)
    assert isinstance(command, list)
    os.environ.clear()
    show(command, environment, apart=bool(request.get("apart")))
    os.environ.update(environment)
    time.tzset()
    os.chdir(str(request["folder"]))
    at_once = bool(environment.get("PYTHONUNBUFFERED"))
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = open(number, "w", buffering=1, closefd=False, errors=getattr(sys, name).errors)  # noqa: SIM115 - stays open
        stream.reconfigure(line_buffering=number == 2 or stream.isatty(), write_through=at_once)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    more = environment.get("PYTHONPATH", "")
    script = request["how"] == "-c"
    sys.path[:] = ["" if script else str(Path.cwd()), *filter(None, more.split(os.pathsep)), *paths]
    asked = request["warnings"]
    assert isinstance(asked, list)
    for action in asked:
        sys.warnoptions.append(action)
        warnings.simplefilter(action)
    arguments = request["arguments"]
    assert isinstance(arguments, list)
    sys.argv[:] = ["-c" if script else str(request["what"]), *arguments]
    importlib.invalidate_caches()


def main(paths: list[str]) -> dict[str, object]:
    """Returns in a new process, with what it shall run; `paths`: what the interpreter has put on `sys.path`."""
    descriptor, *modules, _ = sys.argv[1:]  # the last makes room for the command lines of others
    gc.disable()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in modules:
            importlib.import_module(module)
        load_ahead()
        if "forums.application" in sys.modules:
            from workers.crawler.warm_parent import preload

            preload()  # Scrapy's own parts: `requests`, of the middleware of cookies, alone is a third of a short crawl
            sys.modules.pop("workers.crawler.__main__", None)  # `runpy` warns of a module that is there
    gc.freeze()
    _in_large_pages()
    if (threads := len(os.listdir("/proc/self/task"))) != 1:  # noqa: PTH208 - names alone
        raise SystemExit(f"{threads} threads after importing {modules}: a fork would lose all but one")
    if "/dev/zero (deleted)" in Path("/proc/self/maps").read_text():
        raise SystemExit(f"memory that is shared by fork after importing {modules}: what one program writes, the next would read")
    request = in_new_process(socket.socket(fileno=int(descriptor)))
    gc.enable()
    gc.set_threshold(10_000, 20, 20)  # as in the tests' own processes
    become(request, paths)
    return request


def run(request: dict[str, object], paths: list[str]) -> None:
    from tests.support.forked_crawlers import fork_checks

    fork_checks(paths)
    if request["how"] == "-c":
        sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(str(request["what"]), "<string>", "exec"), sys.modules["__main__"].__dict__)
        return
    if request["what"] == "demo" or (request["what"] == "cli.main" and sys.argv[1:2] in (["up"], ["watch"])):
        from tests.support.forked_services import fork_services

        request = fork_services(paths) or request
    if request["what"] == "celery" or sys.argv[1:2] == ["tasks"]:  # it may be a worker
        from tests.support.forked_crawlers import fork_crawlers

        fork_crawlers(paths)
    sys.modules.pop(str(request["what"]), None)  # `runpy` warns of a module that is there
    runpy.run_module(str(request["what"]), run_name="__main__", alter_sys=True)


def end(code: int) -> None:
    """What the interpreter does at its end, but for taking its objects apart: that copies each page that the family shares with
    this process, for 0.09 s of CPU. Comes back where a stream cannot be written.
    """
    threading._shutdown()  # type: ignore[attr-defined] # waits for the threads
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        for stream in {sys.stdout, sys.__stdout__, sys.stderr}:  # a program may have put another in place of the first
            stream.flush()
        os._exit(code & 0xFF)


if __name__ == "__main__":
    paths = sys.path[1:]
    request = main(paths)
    try:
        run(request, paths)
    except SystemExit as told:
        if told.code is None or isinstance(told.code, int):
            end(told.code or 0)
        raise
    end(0)
