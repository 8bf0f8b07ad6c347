"""Interleaved rounds: each runs its variants once, in random order; a ratio is taken within a round.

A disturbance of a minute affects all variants of that round alike, so the median of the rounds' ratios is more reliable than the
ratio of two medians.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figures = dict[str, Any]
Value = Callable[[Figures], float]


def pages_per_s(figures: Figures) -> float:
    """Pages per second of wall time."""
    return float(figures["pages"] / max(figures["wall_s"], 1e-9))


def pages_per_cpu_s(figures: Figures) -> float:
    """Pages per second of the crawler's CPU time."""
    return float(figures["pages"] / max(figures["cpu_s"], 1e-9))


@dataclass(frozen=True)
class Rounds:
    """Results: for each round the figures of each variant that ran in it."""

    played: list[dict[str, Figures]]

    @classmethod
    def play(
        cls, number: int, variants: Sequence[str], measure: Callable[[str], Figures], *, slow: Mapping[str, int] | None = None
    ) -> Rounds:
        """Run `number` rounds; a variant in `slow` takes part only in the first so many, after the others: it must not
        come between two that are compared.
        """
        slow = slow or {}
        played = []
        for place in range(number):
            taking_part = [variant for variant in variants if place < slow.get(variant, number)]
            order = sorted(random.sample(taking_part, len(taking_part)), key=slow.__contains__)
            played.append(cls._round(f"round {place + 1}/{number}", order, measure))
        return cls(played)

    @classmethod
    def pairs(cls, number: int, base: str, variants: Sequence[str], measure: Callable[[str], Figures]) -> Rounds:
        """Run each variant `number` times, each with a run of the base, for small differences between many variants."""
        order = [(place + 1, variant) for place in range(number) for variant in random.sample(variants, len(variants))]
        return cls(
            [cls._round(f"round {place}/{number}", random.sample([base, variant], 2), measure) for place, variant in order]
        )

    @staticmethod
    def _round(name: str, order: Sequence[str], measure: Callable[[str], Figures]) -> dict[str, Figures]:
        figures: dict[str, Figures] = {}
        for variant in order:
            figures[variant] = measure(variant)
            print(f"{name} {variant}: {_short(figures[variant])}", file=sys.stderr, flush=True)
        return figures

    def median(self, variant: str, value: Value) -> float:
        """Median over the rounds of one variant."""
        return statistics.median(value(one[variant]) for one in self.played if variant in one)

    def ratios(self, variant: str, base: str, value: Value = pages_per_s) -> list[float]:
        """For each round this variant's value ÷ the base's in the same round, sorted."""
        return sorted(value(one[variant]) / value(one[base]) for one in self.played if variant in one and base in one)

    def ratio(self, variant: str, base: str, value: Value = pages_per_s) -> float:
        """Return the median of `ratios`."""
        return statistics.median(self.ratios(variant, base, value))


def _short(figures: Figures) -> Figures:
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in figures.items()
        if not isinstance(value, list | dict)
    }
