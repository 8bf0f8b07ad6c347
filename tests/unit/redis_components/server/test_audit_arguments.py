"""What the audit keeps of arguments: without secrets, in a time that grows with their length."""

from __future__ import annotations

import re

import pytest

from redis_components.server import printable
from tests.support.regex_steps import StepCounter, deep_calls


def test_long_arguments_are_cut_before_they_are_searched() -> None:
    """2,000 letters took 19 s, and one POST of a megabyte held the API for minutes."""
    kept = printable.without_secrets(
        ["--reason", "a" * 2_000, "pass" * 500_000, "x" * 100 + " token=" + "b" * 1_000_000, "-" * 1_000_000]
    )
    assert max(map(len, kept)) <= 200
    assert kept[3] == "x" * 100 + " token=***"


@pytest.mark.parametrize("text", ["a", "pass", "token ", "a-", "pass=", '"key" ', "auth", "author"])
def test_a_name_of_a_secret_is_looked_at_once(text: str) -> None:
    steps = []
    with deep_calls():
        for size in (400, 800):
            counter = StepCounter(printable._SECRET.pattern, printable._SECRET.flags)
            counter.run("finditer", text * (size // len(text)))
            steps.append(counter.steps / size)
    assert max(steps) < 60
    assert steps[1] < 1.25 * steps[0]


@pytest.mark.parametrize("name", ["token", "API_KEY", "my-auth-x", "passphrase", "x-session-id", "bearer"])
def test_names_of_secrets_are_found_in_the_middle_of_a_text(name: str) -> None:
    assert re.fullmatch(printable.SECRET_NAME, name, re.IGNORECASE)
    assert printable.without_secrets([f"see {name} = word", f'{{"{name}": "word"}}', f"--{name}", "word", f"--{name}=word"]) == (
        f"see {name} =***",
        f'{{"{name}":***',
        f"--{name}",
        "***",
        f"--{name}=***",
    )


@pytest.mark.parametrize("name", ["author", "to ken", "name", "ke-y"])
def test_other_names_are_none(name: str) -> None:
    assert printable.without_secrets([f"{name}=word", f"--{name}", "word"]) == (f"{name}=word", f"--{name}", "word")


def test_a_password_behind_the_cut_is_hidden_too() -> None:
    assert "marked" not in printable.without_secrets(["redis://u:marked" + "x" * 5_000 + "@host/0"])[0]
