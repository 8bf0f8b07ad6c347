"""What was run so far, target by target: benchmarks/results/fuzzing.md, which each run reads and writes again."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

FILE = Path(__file__).parents[2] / "benchmarks" / "results" / "fuzzing.md"
HEAD = "| target | minutes | inputs | places reached | runs that found something |"
_ROW = re.compile(r"\| (\S+) \| ([\d.]+) \| ([\d,]+) \| (\d+) \| (\d+) \|")


@dataclass
class Row:
    """Of one target; `reached`: edges of instrumented code, in the last run."""

    minutes: float = 0.0
    inputs: int = 0
    reached: int = 0
    found: int = 0


@dataclass
class Ledger:
    """The rows, and the text around them, which stays."""

    before: str
    after: str
    rows: dict[str, Row] = field(default_factory=dict)

    @classmethod
    def read(cls, file: Path = FILE) -> Self:
        before, _, rest = file.read_text("utf-8").partition(HEAD + "\n")
        lines = rest.splitlines()
        end = next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))
        rows = {
            found[1]: Row(float(found[2]), int(found[3].replace(",", "")), int(found[4]), int(found[5]))
            for line in lines[:end]
            if (found := _ROW.fullmatch(line))
        }
        return cls(before, "\n".join(lines[end:]), rows)

    def add(self, name: str, minutes: float, inputs: int, reached: int, *, found: bool) -> Self:
        row = self.rows.setdefault(name, Row())
        row.minutes, row.inputs, row.found = row.minutes + minutes, row.inputs + inputs, row.found + found
        row.reached = reached or row.reached
        return self

    def write(self, file: Path = FILE) -> None:
        lines = [
            f"| {name} | {row.minutes:.1f} | {row.inputs:,} | {row.reached} | {row.found} |" for name, row in self.rows.items()
        ]
        table = "\n".join([HEAD, "| --- | ---: | ---: | ---: | ---: |", *lines])
        file.write_text(f"{self.before}{table}\n{self.after}".rstrip() + "\n", "utf-8")
