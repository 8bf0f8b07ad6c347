"""Each regular expression of the tree, and how its work grows with the text.

Steps of `re`, character by character, as `tests/support/regex_steps.py` counts them, on texts made from the
expression's own parts; the worst of them is in the table. Growth: the steps for twice the text. CPU: of the engine that
searches, on that text with 1,000 and 2,000 characters. Expressions of profiles are searched by the
package `regex`, within a second a page (here within 0.2 s), and need not be linear.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import regex

from benchmarks.support.report import Report, options
from tests.support.other_patterns import built, of_lua, of_profiles
from tests.support.pattern_growth import MOST_GROWTH, Growth, growth_of
from tests.support.product_patterns import Use, of_product
from tests.support.regex_steps import deep_calls

SIZES = (1_000, 2_000)
HEAD = ["where", "expression", "used by", "growth", "steps a character", *(f"ms at {size:,}" for size in SIZES)]
MOST_S = 0.2


def main() -> None:
    """Measure each expression."""
    chosen = options(__doc__).parse_args()
    report = Report(title="Patterns", method=" ".join((__doc__ or "").split("\n\n", 1)[1].split()))
    product, functions = of_product()
    with deep_calls():
        ours = [(use, _growth(use)) for use in [*product, *built(functions), *of_lua()]]
        profiles = [(use, _growth(use)) for use in of_profiles()]
    worst = max(growth.ratio for _, growth in ours)
    report.target(
        f"no expression of code or Lua ({len(ours)}) needs more than {MOST_GROWTH} times the steps", worst <= MOST_GROWTH
    )
    report.table(HEAD, [_row(use, growth, _in_re) for use, growth in _by_growth(ours)])
    report.table(HEAD, [_row(use, growth, _in_regex) for use, growth in _by_growth(profiles)])
    report.finish(chosen)


def _growth(use: Use) -> Growth:
    return growth_of(use.pattern, use.flags, use.modes, is_shown=True)


def _by_growth(found: Iterable[tuple[Use, Growth]]) -> list[tuple[Use, Growth]]:
    return sorted(found, key=lambda one: (-one[1].ratio, one[0].where))


def _row(use: Use, growth: Growth, search: Callable[[Use, str, str], Any]) -> list[object]:
    shown = use.pattern if isinstance(use.pattern, str) else use.pattern.decode("latin-1")
    shown = re.sub(r"\s+", " ", shown).encode("utf-8", "backslashreplace").decode()
    shown = (shown if len(shown) <= 60 else f"{shown[:59]}…").replace("|", "¦").replace("`", "´")
    ratio = "more than square" if growth.ratio == float("inf") else f"{growth.ratio:.2f}"
    steps = "" if growth.steps == float("inf") else f"{growth.steps:.0f}" if growth.steps <= 300 else "over 300"
    return [
        use.where,
        f"`{shown}`",
        growth.mode or use.modes[0],
        ratio,
        steps,
        *(_ms(use, growth, size, search) for size in SIZES),
    ]


def _ms(use: Use, growth: Growth, size: int, search: Callable[[Use, str, str], Any]) -> str:
    spent = []
    for _ in range(2):
        begun = time.process_time()
        try:
            search(use, growth.mode or use.modes[0], growth.text(size))
        except TimeoutError:
            return "ended"
        spent.append((time.process_time() - begun) * 1000)
    return f"{min(spent):.2f}"


def _in_re(use: Use, mode: str, text: str) -> Any:
    compiled = re.compile(use.pattern, use.flags & ~re.DEBUG)
    given: Any = text if isinstance(use.pattern, str) else text.encode("latin-1", "replace")
    found = getattr(compiled, mode)(given)
    return list(found) if mode == "finditer" else found


def _in_regex(use: Use, mode: str, text: str) -> Any:
    found = getattr(regex.compile(use.pattern, regex.MULTILINE if use.flags & re.MULTILINE else 0), mode)(text, timeout=MOST_S)
    return list(found) if mode == "finditer" else found


if __name__ == "__main__":
    main()
