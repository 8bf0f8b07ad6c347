"""The health check of a process: reads its status file, or asks its HTTP server. Uses little of the standard library.

    python -I -S health_check.py FOLDER/ROLE        a worker or a beat, whose files `workers.node.health` writes
    python -I -S health_check.py FOLDER/            each role that has reported there; none is well, too
    python -I -S health_check.py --end FOLDER/ROLE  the same, and ends what hangs, where nothing else does (Docker Compose)
    python -I -S health_check.py http://127.0.0.1:9410/livez

Exit code 0 and a line: the process works, or waits for a known reason. 1 and a line: it does not, or its report is overdue.
Needs neither Redis nor Celery: an orchestrator must not restart processes because Redis is away.
"""

import os
import sys
import time

ANSWER_S = 5.0
SIGKILL = 9  # `signal` loads `enum`
AGAIN_S = 6.0  # longer than from one line of a status file to the next: after a freeze, or when the clock was set
MOST_BYTES = 4096


def of_files(folder: str, role: str, now: float) -> tuple[bool, str]:
    """Return True, and a sentence, if every process of `role` on this host is well by its status file in `folder`; `now` in
    epoch s.
    """
    try:
        states = [one[:2] for one in _lines(folder, role, now)]
    except OSError as error:
        if not role and isinstance(error, FileNotFoundError):
            return True, "no process here reports its health"
        return False, f"{folder} cannot be read ({error.strerror}): no {role} has started, or it cannot write there"
    if not states and not role:
        return True, "no process here reports its health"
    if not states:
        return False, f"no {role} runs on this host, or it cannot write to {folder}"
    return all(state in ("ok", "waits") for state, _ in states), "; ".join(words for _, words in sorted(states))


def end_hung(folder: str, role: str) -> None:
    """Kill the processes of `role` that hang at two looks."""
    try:
        if hung := _hung(folder, role):
            time.sleep(AGAIN_S)
            for pid in hung & _hung(folder, role):
                os.kill(pid, SIGKILL)
    except OSError as error:
        sys.stderr.write(f"what hangs cannot be ended: {error}\n")


def _hung(folder: str, role: str) -> set[int]:
    return {pid for state, _, pid in _lines(folder, role, time.time()) if state == "hung"}


def _lines(folder: str, role: str, now: float) -> list[tuple[str, str, int]]:
    """Return state, words and process of each status file whose process lives. Raises OSError."""
    mine = f"@{os.uname().nodename}."
    found = []
    for name in sorted(os.listdir(folder)):  # noqa: PTH208 - pathlib takes 10 ms
        of, here, pid = name.partition(mine)
        if not here or of != (role or of) or not pid.isdecimal() or not _lives(int(pid)):
            continue
        try:
            at, limit_s, state, words = read_line(f"{folder}/{name}")
        except (OSError, ValueError):
            found.append(("broken", f"process {pid}: {folder}/{name} is not a status file", int(pid)))
            continue
        silent_s = now - at
        if silent_s <= limit_s:
            found.append((state, f"process {pid}: {words}", int(pid)))
        elif _age_s(pid) + limit_s > silent_s:  # else another process of that number wrote it
            found.append(("hung", f"process {pid} has not reported for {silent_s:.0f} s; before: {words}", int(pid)))
    return found


def read_line(path: str) -> tuple[float, float, str, str]:
    """Return when it was written (epoch s), after how many seconds its process counts as dead, the state and the words of a
    status file. Raises OSError, ValueError.
    """
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - pathlib takes 10 ms
        at, limit_s, state, words = file.readline(MOST_BYTES).rstrip().split(" ", 3)
    return float(at), float(limit_s), state, words


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # another user's
        return True
    except (OSError, OverflowError):
        return False
    return True


def _age_s(pid: str) -> float:
    """Return the seconds since the start of a process; without /proc no process is too young."""
    try:
        with open(f"/proc/{pid}/stat") as stat, open("/proc/uptime") as up:  # noqa: PTH123
            started = int(stat.read(MOST_BYTES).rpartition(")")[2].split()[19])
            return float(up.read(MOST_BYTES).split()[0]) - started / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return float("inf")


def of_http(url: str) -> tuple[bool, str]:
    """Return True, and a sentence, if the server at `http://ADDRESS:PORT/PATH` answers with 200. ADDRESS is an IPv4 address."""
    import _socket  # without the rest of `socket`, whose import takes longer than everything else

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


def main(target: str, *, end: bool = False) -> int:
    """Print the finding; the exit code."""
    if target.startswith("http://"):
        well, line = of_http(target)
    else:
        folder, _, role = target.rpartition("/")
        well, line = of_files(folder, role, time.time())
        if end and not well:
            end_hung(folder, role)
    (sys.stdout if well else sys.stderr).write(f"{line}\n")
    return 0 if well else 1


if __name__ == "__main__":
    options = sys.argv[1:-1]
    if len(sys.argv) < 2 or options not in ([], ["--end"]):
        sys.exit("usage: health_check.py [--end] FOLDER/ROLE, or http://ADDRESS:PORT/PATH")
    sys.exit(main(sys.argv[-1], end=bool(options)))
