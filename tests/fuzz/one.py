"""`python -m tests.fuzz.one TARGET FOLDER SECONDS FINDINGS`: one target, guided by coverage, for so much processor time.

libFuzzer, of atheris, changes the inputs in FOLDER and adds what reaches other code. Ends with 72 when the time is over, with 77
after an input that is a fault: the file of it is in FINDINGS.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path

import atheris  # type: ignore[import-not-found]  # in .venv/fuzz

SLOWER = 5.0  # code that reports what it reaches
LONGEST_S = 7200  # of a clock on the wall: others may have the machine for that long
MOST_BYTES, SHORT_BYTES = 20_000, 3_000
"""Of an input in which a part is repeated, and of the others: twice as many short ones are read in the same time."""
PATTERNS = (
    "redis_components",
    "forum_reader",
    "forums",
    "workers",
    "fleet_operations",
    "tasks",
    "monitoring",
    "tests.fuzz",
    "protego",
    "dateparser",
)


def main(name: str, folder: str, seconds: float, findings: str, *, merge: bool = False) -> None:
    with atheris.instrument_imports(include=list(PATTERNS), enable_loader_override=False):
        from tests.fuzz.targets import target

        found = target(name)
    words = Path(findings) / f"{name}.dict"
    with words.open("w", encoding="utf-8") as file:
        file.writelines(f'"{"".join(f"{chr(92)}x{byte:02x}" for byte in word.encode())}"\n' for word in found.words if word)
    count = 0

    def one(raw: bytes) -> None:
        nonlocal count
        count += 1
        if not count % 64 and time.process_time() - begun > seconds:
            os.kill(os.getpid(), signal.SIGINT)
        found.check(raw, SLOWER)

    def changed(raw: bytes, most: int, seed: int) -> bytes:
        """As libFuzzer does it; of sixteen times once a part is repeated, which shows what costs more than its size."""
        if seed % 16 or len(raw) < 2:
            return bytes(atheris.Mutate(raw[:SHORT_BYTES], min(most, SHORT_BYTES)))
        begin, length, times = seed // 16 % len(raw), 1 + seed // 1024 % 64, 2 ** (seed // 65536 % 10)
        part = raw[begin : begin + length]
        return (raw[:begin] + part * times + raw[begin + len(part) :])[:most]

    begun = time.process_time()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # libFuzzer takes only what nobody has taken
    options = [
        f"-artifact_prefix={findings}/{name}-",
        f"-timeout={LONGEST_S}",
        "-handle_int=1",
        f"-max_len={MOST_BYTES}",
        "-rss_limit_mb=3000",
        "-print_final_stats=1",
        *([f"-dict={words}"] if found.words else []),
        "-verbosity=1",
    ]
    if merge:
        options, folders = ["-merge=1", f"-max_len={MOST_BYTES}", "-rss_limit_mb=3000"], [findings, folder]
    else:
        folders = [folder]
    gc.freeze()
    atheris.Setup([sys.argv[0], *options, *folders], one, custom_mutator=changed, internal_libfuzzer=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4], merge=sys.argv[5:] == ["merge"])
