"""The health check of a process: reads its status file, or asks its HTTP server. Standard library, and little of that.

    python -I -S health_check.py FOLDER/ROLE        a worker or a beat, whose files `workers.process.status_file` writes
    python -I -S health_check.py http://127.0.0.1:9410/livez

Exit code 0 and a line: it does its job, or waits and knows why. 1 and a line: it does not, or nobody heard of it lately.
Needs neither Redis nor Celery: an orchestrator must not restart processes because Redis is away.
"""

import os
import sys
import time

ANSWER_S = 5.0
MOST_BYTES = 4096


def of_files(folder: str, role: str, now: float) -> tuple[bool, str]:
    """Whether every process of `role` on this host is well, by the status files in `folder`; `now` in epoch s."""
    mine = f"{role}@{os.uname().nodename}."
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(mine))  # noqa: PTH208 - pathlib takes 10 ms
    except OSError as error:
        return False, f"{folder} cannot be read ({error.strerror}): no {role} has started, or it cannot write there"
    said = [verdict for name in names if (verdict := _of_file(f"{folder}/{name}", name.rpartition(".")[2], now))]
    if not said:
        return False, f"no {role} runs on this host, or it cannot write to {folder}"
    return all(well for well, _ in said), "; ".join(words for _, words in sorted(said))


def _of_file(path: str, pid: str, now: float) -> tuple[bool, str] | None:
    """None where the process has ended."""
    try:
        os.kill(int(pid), 0)
    except PermissionError:  # another user's
        pass
    except (OSError, ValueError, OverflowError):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib takes 10 ms
            at, limit_s, state, words = file.readline(MOST_BYTES).rstrip().split(" ", 3)
        silent_s, limit = now - float(at), float(limit_s)
    except (OSError, ValueError):
        return False, f"process {pid}: {path} is not a status file"
    if silent_s > limit:
        return False, f"process {pid} has said nothing for {silent_s:.0f} s; before: {words}"
    return state != "broken", f"process {pid}: {words}"


def of_http(url: str) -> tuple[bool, str]:
    """Whether the server at `http://ADDRESS:PORT/PATH` answers with 200. ADDRESS is an IPv4 address."""
    import _socket  # without what `socket` brings, which takes longer than all the rest

    where, _, path = url.removeprefix("http://").partition("/")
    host, _, port = where.partition(":")
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_S)
        connection.connect((host, int(port)))
        connection.sendall(f"GET /{path} HTTP/1.0\r\nHost: {where}\r\n\r\n".encode("latin-1"))
        answer = connection.recv(MOST_BYTES)
    except (OSError, ValueError, OverflowError) as error:
        return False, f"{url}: {error}"
    finally:
        connection.close()
    line = answer.partition(b"\r\n")[0].decode("latin-1")
    return line.split(" ")[1:2] == ["200"], f"{url}: {line or 'it closed the connection'}"


def main(target: str) -> int:
    """Print the finding; the exit code."""
    if target.startswith("http://"):
        well, said = of_http(target)
    else:
        folder, _, role = target.rpartition("/")
        well, said = of_files(folder, role, time.time())
    (sys.stdout if well else sys.stderr).write(f"{said}\n")
    return 0 if well else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: health_check.py FOLDER/ROLE, or http://ADDRESS:PORT/PATH")
    sys.exit(main(sys.argv[1]))
