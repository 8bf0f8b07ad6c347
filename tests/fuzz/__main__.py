"""`make fuzz MINUTES=5 ONLY=date`: each target for so many minutes of processor time, one after the other; results are added up.

python -m tests.fuzz MINUTES [ONLY]     fuzz; ends with 1 where something was found, which is put into the target's corpus
python -m tests.fuzz keep [ONLY]        put into each corpus the smallest inputs that reach all that was reached
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

from .ledger import Ledger
from .target import CORPUS, Target, digest
from .targets import targets

WORK = Path("build/fuzz")
OVER, FOUND = 72, 77
LONGEST_KEPT = 3_000  # bytes
MOST_KEPT = 40  # inputs of a target, the smallest first
FIRST = 150


def main(arguments: list[str]) -> int:
    first, only = arguments[0], arguments[1] if len(arguments) > 1 else ""
    chosen = targets(only)
    if first == "keep":
        for target in chosen:
            print(f"{target.name}: {_keep(target)} inputs are kept")  # noqa: T201 - a command
        return 0
    found = [target.name for target in chosen if not _fuzz(target, float(first))]
    if found:
        print(f"found: {', '.join(found)}; see tests/fuzz/corpus")  # noqa: T201
    return 1 if found else 0


def _fuzz(target: Target, minutes: float) -> bool:
    """Run it, and add what it did to the ledger; False where something was found."""
    folder, findings = WORK / target.name, WORK / "found"
    folder.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    for raw in (*(raw for _, raw in target.kept()), *target.made(FIRST)):
        (folder / digest(raw)).write_bytes(raw)
    command = [sys.executable, "-m", "tests.fuzz.one", target.name, str(folder), str(minutes * 60), str(findings)]
    environment = {**os.environ, "PYTHONPATH": f".venv/fuzz:{os.environ.get('PYTHONPATH', '')}"}
    before = _used_s()
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    said = ended.stdout + ended.stderr
    (WORK / f"{target.name}.log").write_text(said)
    inputs = int(match[1]) if (match := re.search(r"stat::number_of_executed_units:\s*(\d+)", said)) else 0
    reached = int(all_[-1]) if (all_ := re.findall(r"cov: (\d+)", said)) else 0
    is_well = ended.returncode == OVER
    if not is_well:
        for file in findings.glob(f"{target.name}-*"):
            target.folder.mkdir(parents=True, exist_ok=True)
            file.rename(target.folder / f"found-{file.name.rpartition('-')[2][:12]}")
    Ledger.read().add(target.name, (_used_s() - before) / 60, inputs, reached, found=not is_well).write()
    print(f"{target.name}: {inputs:,} inputs, {reached} places of the code, {'well' if is_well else 'FOUND'}", flush=True)  # noqa: T201
    return is_well


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _keep(target: Target) -> int:
    """libFuzzer's own choice of what reaches all that the folder reaches, without what is long."""
    chosen = WORK / "chosen"
    subprocess.run(["rm", "-rf", str(chosen)], check=True)
    chosen.mkdir(parents=True)
    command = [sys.executable, "-m", "tests.fuzz.one", target.name, str(WORK / target.name), "600", str(chosen), "merge"]
    environment = {**os.environ, "PYTHONPATH": f".venv/fuzz:{os.environ.get('PYTHONPATH', '')}"}
    subprocess.run(command, env=environment, capture_output=True, check=False)
    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("[0-9a-f]*"):
        if not old.name.startswith("found-"):
            old.unlink()
    small = sorted((file.stat().st_size, file) for file in chosen.iterdir())
    kept = [file for size, file in small if size <= LONGEST_KEPT][:MOST_KEPT]
    for file in kept:
        raw = file.read_bytes()
        (folder / digest(raw)).write_bytes(raw)
    return len(kept)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
