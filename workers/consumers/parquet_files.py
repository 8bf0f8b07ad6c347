"""Items as Parquet files. Such a file cannot grow, so items are kept in a journal, which becomes one when it is rotated.

A killed process loses nothing and leaves no half-written Parquet file: an item leaves Redis when the journal's disk has it. A
rotated journal has the name of its Parquet file and is removed when that is whole; the next process converts the remaining ones.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from redis_components.errors import ConfigError

from .consume import Item, Sink, SinkUnavailable, as_row, to_line
from .files import RotatedFile, whole_lines

MOST_COLUMNS = 1_000
DEFAULT_MAX_AGE_S = 3600.0
"""Without a limit a small stream would not become a Parquet file for days."""
JOURNAL, PARQUET = ".journal", ".parquet"

logger = logging.getLogger(__name__)


class ParquetFiles(Sink):
    """Writes `<name>-<time>.parquet` files; `path` gives their folder and name. Items of `<name>.journal` are in none yet."""

    def __init__(self, path: Path, *, max_bytes: int = 0, max_age_s: float = 0.0) -> None:
        try:
            import pyarrow.parquet  # noqa: F401 - only whether it is there: other targets do not need it
        except ImportError:
            raise ConfigError("parquet: needs pyarrow: install it with pip install 'trawl-fleet[parquet]'") from None
        self._file = RotatedFile(
            path.with_suffix(JOURNAL), whole_lines, max_bytes=max_bytes, max_age_s=max_age_s or DEFAULT_MAX_AGE_S, becomes=PARQUET
        )
        self._rotated = re.compile(rf"{re.escape(self._file.path.stem)}-\d{{8}}T\d{{6}}\.\d{{3,}}\{JOURNAL}", re.ASCII)
        self._failed = ""
        self._convert()
        self._columns = self._columns_of_journal()

    def write(self, items: Sequence[Item]) -> dict[int, str]:
        """Append them to the journal."""
        refused, lines = dict[int, str](), list[bytes]()
        for one in items:
            try:
                names = set(as_row(one))
                if len(names) > MOST_COLUMNS:
                    raise ValueError(f"it has {len(names):,} fields; a Parquet file takes {MOST_COLUMNS:,}")
            except ValueError as error:
                refused[one.place] = str(error)
                continue
            if len(self._columns | names) > MOST_COLUMNS:
                self._append(lines)
                self._begin_another()
                lines = []
            self._columns |= names
            lines.append(to_line(one.value))
        self._append(lines)
        self._rotate_if_due()
        return refused

    def tick(self) -> None:
        """Rotate a journal that became old, and convert what could not be converted before."""
        self._rotate_if_due()
        if self._failed:
            self._convert()

    def close(self) -> None:
        """Make the rest a Parquet file, and leave the journal to others."""
        try:
            if self._file.size:
                self._begin_another()
        except SinkUnavailable as error:
            logger.warning("%s; its items stay in the journal for the next consumer", error)
        finally:
            self._file.close()

    def _append(self, lines: list[bytes]) -> None:
        if lines:
            self._file.append(b"".join(lines))

    def _rotate_if_due(self) -> None:
        if self._file.rotate_if_due():
            self._columns = set()
            self._convert()

    def _begin_another(self) -> None:
        if self._file.size:
            self._file.rotate()
        self._columns = set()
        self._convert()

    def _convert(self) -> None:
        """Convert each rotated journal. What the disk refuses waits: its items are safe in the journal."""
        from .parquet_conversion import convert

        try:
            for journal in sorted(self._file.path.parent.iterdir()):
                if self._rotated.fullmatch(journal.name):
                    convert(journal, journal.with_suffix(PARQUET))
            self._failed = ""
        except OSError as error:
            if str(error) != self._failed:
                logger.warning("%s: no Parquet file can be written: %s; trying again, nothing is lost", self._file.path, error)
            self._failed = str(error)

    def _columns_of_journal(self) -> set[str]:
        from .parquet_conversion import columns_of

        return set(columns_of(self._file.path))
