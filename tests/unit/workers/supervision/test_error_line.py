"""What a crawler's log says about why it ended."""

from __future__ import annotations

import pytest

from workers.supervision.slot_history import error_line


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", None),
        ("Spider opened\n\n", "Spider opened"),
        ("trawl: nix: unknown spider 'nix'\n", "trawl: nix: unknown spider 'nix'"),
        ("2026-01-01 [x] ERROR: no proxy\n2026-01-01 [x] INFO: Closing spider\n", "2026-01-01 [x] ERROR: no proxy"),
        (
            "2026-01-01 [x] ERROR: the crawl could not be run\nTraceback (most recent call last):\n"
            '  File "a.py", line 1, in f\n    raise KeyError("x")\nsqlalchemy.exc.OperationalError: no such table\n'
            "2026-01-01 [x] INFO: the crawl is over: error\n",
            "sqlalchemy.exc.OperationalError: no such table",
        ),
        ("RuntimeError\nafter it\n", "RuntimeError"),
        ("an Error: in a sentence\nthe end\n", "the end"),
    ],
)
def test_the_line_that_names_the_error_is_found(log: str, line: str | None) -> None:
    assert error_line(log.splitlines()) == line
