"""The table of `make attacks`: how soon an innocent site's new threads are read and stored during each attack."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from tests.attacks.attacked_fleet import Delay

TARGET_S = 1.0
_HEAD = """# An innocent site during attacks

A fleet of two crawlers of lists and two of threads reads a site that publishes a new thread, which is looked for at once;
meanwhile another site, message, key or client does what its row says. *Asked* is the time from the publication until the site's
own log has the request for the thread, *stored* until its row is in the database (one round of `store_items` a second). *Fault*
is the number in the list of faults that were found by attack; rows without one were added since. The worst of {threads} threads
counts.

- Made by: `make attacks`, {today}
- Machine: {cores} cores (load {load:.1f} at the end; shared with other work where that is above the number of cores)
- Target: asked within {target:g} s in {good} of {all} rows

| attack | fault | asked, median s | asked, worst s | stored, worst s |
| --- | --- | --- | --- | --- |
"""


@dataclass
class Figures:
    """Rows, written to `path` at the end; without one nowhere."""

    path: Path | None
    rows: list[tuple[str, str, Sequence[Delay]]] = field(default_factory=list)

    @classmethod
    @contextmanager
    def of_environment(cls) -> Iterator[Self]:
        """`ATTACKS_TABLE` names the file."""
        name = os.environ.get("ATTACKS_TABLE", "")
        figures = cls(Path(name) if name else None)
        yield figures
        figures.write()

    def add(self, attack: str, fault: str, delays: Sequence[Delay]) -> None:
        """A row."""
        self.rows.append((attack, fault, delays))

    def write(self) -> None:
        """The file, where one is named."""
        if self.path is None or not self.rows:
            return
        worst = [max(one.asked_s for one in delays) for _, _, delays in self.rows]
        head = _HEAD.format(
            threads=max(len(delays) for _, _, delays in self.rows),
            today=datetime.now(UTC).date(),
            cores=os.cpu_count(),
            load=os.getloadavg()[0],
            target=TARGET_S,
            good=sum(one <= TARGET_S for one in worst),
            all=len(worst),
        )
        lines = [
            f"| {name} | {fault} | {sorted(one.asked_s for one in delays)[len(delays) // 2]:.2f} | {asked:.2f} |"
            f" {max(one.stored_s for one in delays):.2f} |"
            for (name, fault, delays), asked in zip(self.rows, worst, strict=True)
        ]
        self.path.write_text(head + "\n".join(lines) + "\n", "utf-8")
