"""Files in TOML are a table or one refusal, however deep or long what stands in them is."""

from __future__ import annotations

import pytest

from redis_components.server.untrusted_values import MOST_DEPTH, toml_table


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a" + ".a" * 800 + " = 1", "nested more than 20 deep"),
        ("[a" + ".a" * 5000 + "]", "nested more than 20 deep"),
        ("a = " + "[" * 100 + "]" * 100, "nested more than 20 deep"),
        ("a = " + "[" * 5000, "nested more than 20 deep"),
        ("a = " + "1" * 5000, "limit"),
        ("a = 0x1" + "0" * 16, "more than 64 bits"),
        ("a = [[0x1" + "0" * 5000 + "]]", "more than 64 bits"),
        ("a =", "Invalid value"),
    ],
)
def test_what_is_too_deep_or_too_long_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        toml_table(text)


def test_tables_and_lists_within_the_bound_are_read() -> None:
    deep = toml_table("a" + ".a" * (MOST_DEPTH - 1) + f" = {2**63 - 1}\nb = [{{c = [-1, true]}}]")
    assert deep["b"] == [{"c": [-1, True]}]
    for _ in range(MOST_DEPTH):
        deep = deep["a"]
    assert deep == 2**63 - 1
