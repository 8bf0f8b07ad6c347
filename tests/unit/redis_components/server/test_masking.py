"""What is hidden where arguments, settings and texts are shown."""

from __future__ import annotations

import pytest

from redis_components.server.printable import masked_text, masked_values


def test_values_that_are_named_like_secrets_and_logins_in_urls_are_hidden() -> None:
    given = {
        "api_key": "x",
        "Password": 5,
        "category": "travel",
        "feed": "https://me:word@example.org/x?y",
        "size": 3,
        "author": "a",
    }
    shown = {**given, "api_key": "***", "Password": "***", "feed": "https://me:***@example.org/x?y"}
    assert masked_values(given) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("('toy', 0)", "('toy', 0)"),
        ("['redis://:word@h:1/0', 'http://h:80/a@b']", "['redis://:***@h:1/0', 'http://h:80/a@b']"),
        ("{'service': 'a', 'arguments': {'token': 'a\\'b', 'n': 1}}", "{'service': 'a', 'arguments': {'token': '***', 'n': 1}}"),
        ('{"secret": ["a", "b"], "c": 1}', '{"secret": \'***\', "c": 1}'),
        ("{'password': 12345}", "{'password': '***'}"),
    ],
)
def test_a_text_of_arguments_keeps_the_rest(text: str, shown: str) -> None:
    assert masked_text(text) == shown


def test_a_long_text_of_others_costs_little() -> None:
    for hostile in ("'token'" * 50_000, "://" * 100_000, "'key': '" + "\\" * 300_000, "a" * 400_000, "x://" + "a" * 400_000):
        masked_text(hostile)
