"""The forum as a process: how it starts, refuses, stops, and ends with its parent."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from demo.forum.process import ForumFailed, ForumProcess
from tests.support import warm_start
from tests.support.processes import wait_until

SMALL = ("--forums=1", "--threads=3")


@contextmanager
def _forum(*arguments: str, family: str = "cli.main") -> Iterator[warm_start.Popen]:
    """`python -m demo.forum`, killed if it is still there at the end; without a family it starts cold."""
    command = [sys.executable, "-m", "demo.forum", *arguments]
    with warm_start.Popen(
        command, family=family, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_two_processes_of_one_seed_have_the_same_truth() -> None:
    with ForumProcess(seed=9, forums=2, threads=20) as one, ForumProcess(seed=9, forums=2, threads=20) as other:
        assert one.url != other.url
        assert one.truth() == other.truth()
    with ForumProcess(seed=10, forums=2, threads=20) as another:
        assert another.truth()["posts"].keys() == {f"p{number}" for number in range(1, 41)}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_code_0_and_without_a_word(number: signal.Signals, tmp_path: Path, no_process_left: None) -> None:
    ready = tmp_path / "ready.json"
    with _forum(*SMALL, "--rate=50", f"--ready-file={ready}") as process:
        wait_until(ready.exists, "the forum's ready file", 60)
        listening = json.loads(ready.read_text())
        assert listening == {"url": listening["url"], "pid": process.pid}
        port = int(listening["url"].rsplit(":", 1)[1])

        with socket.create_connection(("127.0.0.1", port), timeout=60):  # an idle kept connection must not hold it
            process.send_signal(number)
            out, errors = process.communicate(timeout=60)

        assert (process.returncode, errors) == (0, "")
        assert out.startswith(f"forum at {listening['url']}: 1 forums, 3 threads, ")
        assert list(tmp_path.iterdir()) == [ready]


def test_a_signal_while_it_grows_its_content_ends_it_at_once_with_code_0(no_process_left: None) -> None:
    with _forum("--forums=1000", "--threads=1000", family="") as process:
        wait_until(lambda: psutil.Process(process.pid).memory_info().rss > 60_000_000, "a forum that is growing")

        process.terminate()
        _, errors = process.communicate(timeout=60)

        assert (process.returncode, errors) == (0, "")


def test_a_signal_ends_it_while_a_page_is_held_back_for_long(no_process_left: None) -> None:
    with ForumProcess(forums=1, threads=3) as forum:
        forum.control(latency_ms=60_000)
        host, port = forum.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as waiting:
            waiting.sendall(b"GET /post/p1 HTTP/1.1\r\nHost: forum\r\n\r\n")
            assert forum.stop() == 0, "it was not killed"


def test_clients_that_hang_up_at_any_point_leave_no_trace(tmp_path: Path, no_process_left: None) -> None:
    ready = tmp_path / "ready.json"
    with _forum(*SMALL, f"--ready-file={ready}") as process:
        wait_until(ready.exists, "the forum's ready file", 60)
        port = int(json.loads(ready.read_text())["url"].rsplit(":", 1)[1])

        for setting in ("reset_rate", "error_rate", "latency_ms"):
            for sent in (f'{{"{setting}": 1}}'.encode(), f'{{"{setting}": 0}}'.encode()):
                head = b"POST /control HTTP/1.1\r\nHost: forum\r\nContent-Length: %d\r\n\r\n" % len(sent)
                with socket.create_connection(("127.0.0.1", port), timeout=60) as control:
                    control.sendall(head + sent)
                    assert control.recv(12) == b"HTTP/1.1 200"
                for _ in range(20):
                    with socket.create_connection(("127.0.0.1", port), timeout=60) as hasty:
                        hasty.sendall(b"GET /html/f/f1 HTTP/1.1\r\nHost: forum\r\n\r\n")
        process.terminate()
        _, errors = process.communicate(timeout=60)

        assert (process.returncode, errors) == (0, "")


def test_a_port_in_use_is_one_clear_line_and_code_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with _forum(*SMALL, f"--port={port}") as process:
            out, errors = process.communicate(timeout=60)

    assert process.returncode == 1
    assert out == ""
    (line,) = errors.splitlines()
    assert line.startswith("forum: ")
    assert f"('127.0.0.1', {port}): address already in use" in line


@pytest.mark.parametrize(
    ("argument", "code", "said"),
    [
        ("--seed=x", 2, "argument --seed: invalid int value: 'x'"),
        ("--speed=1", 2, "unrecognized arguments: --speed=1"),
        ("--ready-file=/nowhere/at/all", 1, "forum: [Errno 2] No such file or directory: "),
    ],
)
def test_wrong_use_is_one_clear_line(argument: str, code: int, said: str) -> None:
    with _forum(*SMALL, argument) as process:
        _, errors = process.communicate(timeout=60)

        assert process.returncode == code
        assert said in errors.splitlines()[-1]
        assert "Traceback" not in errors


def test_the_helper_raises_with_what_the_forum_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(
            ForumFailed, match=rf"ended with code 1 at its start: forum: .* \('127.0.0.1', {port}\): address already in use"
        ):
            ForumProcess(port=port, forums=1, threads=1).start()


def test_the_helper_says_when_the_forum_is_gone_and_stopping_again_is_harmless() -> None:
    with ForumProcess(forums=1, threads=1) as forum:
        os.kill(forum.pid, signal.SIGKILL)
        wait_until(lambda: psutil.Process(forum.pid).status() == psutil.STATUS_ZOMBIE, "the forum's end")

        with pytest.raises(ForumFailed, match=r"GET http://127.0.0.1:\d+/truth: no usable answer .* the forum's output: "):
            forum.truth()
        assert forum.stop() == -signal.SIGKILL
        assert forum.stop() is None


def test_the_forum_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "from demo.forum.process import ForumProcess\n"
        "forum = ForumProcess(forums=1, threads=3).start()\n"
        "print(forum.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    parent = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)

    assert parent.returncode == -signal.SIGKILL, parent.stderr
    pid = int(parent.stdout)
    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE, "the forum's end", 60)
