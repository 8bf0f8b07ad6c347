"""The expressions that were measured and found linear, so that `make test` measures the new ones alone.

    python -m tests.support.pattern_ledger      # measure all and write the ledger again

A line of the ledger is a digest of an expression, its flags and modes, and of the code that measures and the version of Python,
which parses: where one of them changes, the expression is measured again. `make test-all` reads no ledger.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path

from tests.support.other_patterns import built, of_lua
from tests.support.pattern_growth import growth_of
from tests.support.product_patterns import ROOT, Use, of_product
from tests.support.regex_steps import deep_calls

LEDGER = ROOT / "tests/fixtures/linear_patterns.txt"
_MEASURES = ("regex_steps.py", "pattern_growth.py")


def not_linear(uses: list[Use]) -> list[str]:
    """Return one line for each expression whose work grows faster than its text."""
    known = _known() if os.environ.get("SHORT_TESTS") else frozenset()
    lines = []
    with deep_calls():
        for use in uses:
            if digest(use) in known:
                continue
            growth = growth_of(use.pattern, use.flags, use.modes)
            if not growth.is_linear:
                text = f"{growth.begin!r} + {growth.part!r} * n + {growth.end!r}"
                lines.append(f"{use.where}: {growth.ratio:.1f} times the steps for twice the text: {text}: {use.pattern!r:.200}")
    return lines


def digest(use: Use) -> str:
    """Return the name of an expression and of how it is measured."""
    return hashlib.blake2b(repr((_measure(), use.pattern, int(use.flags), use.modes)).encode(), digest_size=8).hexdigest()


@cache
def _measure() -> str:
    code = [(Path(__file__).parent / name).read_text("utf-8") for name in _MEASURES]
    return repr((sys.version_info[:2], code))


@cache
def _known() -> frozenset[str]:
    return frozenset(LEDGER.read_text("ascii").split()) if LEDGER.exists() else frozenset()


def main() -> None:
    """Measure every expression, and write the ledger if all are linear."""
    uses, functions = of_product()
    every = [*uses, *built(functions), *of_lua()]
    if found := not_linear(every):
        raise SystemExit("\n".join(found))
    LEDGER.write_text("".join(f"{one}\n" for one in sorted({digest(use) for use in every})), "ascii")


if __name__ == "__main__":
    main()
