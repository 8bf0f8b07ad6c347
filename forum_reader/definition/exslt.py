"""Texts that lxml's elements accept."""

from __future__ import annotations

import re
from typing import Any

import regex
from lxml import etree

from forum_reader.errors import UnreadablePage
from forum_reader.patterns import PatternError, compile_pattern
from forum_reader.reading import reading_budget

_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def xml_text(text: str | None) -> str | None:
    """Return `text` without the characters that XML forbids. libxml2's HTML parser keeps them, as bytes and as `&#8;`; lxml
    raises ValueError where such a text is put into another element.
    """
    return text and _REFUSED.sub("", text)


_URI = "http://exslt.org/regular-expressions"
NAMESPACES = {"re": _URI}
_QUOTED = """'[^']*'|"[^"]*\""""
_QUOTED_PATTERN = regex.compile(rf"""\bre:(?:test|match|replace)\s*\((?:[^,()'"]|\([^()]*\)|{_QUOTED})*,\s*({_QUOTED})""")
_STRING = etree.XPath("string()", smart_strings=False)


def _test(_: Any, text: Any, pattern: Any, flags: str = "") -> bool:
    return _find("search", text, pattern, flags) is not None


def _match(_: Any, text: Any, pattern: Any, flags: str = "") -> list[Any]:
    """Return elements with the text of the match and of its groups; with the flag `g`, of all matches."""
    if "g" in flags:
        found = [match if isinstance(match, str) else match[0] for match in _find("findall", text, f"({_text(pattern)})", flags)]
    else:
        match = _find("search", text, pattern, flags)
        found = [] if match is None else [match[0], *match.groups("")]
    return [_element(one) for one in found]


def _replace(_: Any, text: Any, pattern: Any, flags: str, by: Any) -> Any:
    """Return the text with `by` in place of the first match, with the flag `g` of all."""
    compiled = _compiled(_text(pattern), "i" in flags)
    subject = _text(text)
    budget = reading_budget.current()
    replaced = budget.timed(
        lambda timeout: compiled.sub(_text(by), subject, count=0 if "g" in flags else 1, timeout=timeout), _text(pattern), subject
    )
    return xml_text(replaced)


def _find(method: str, text: Any, pattern: Any, flags: str) -> Any:
    compiled, subject = _compiled(_text(pattern), "i" in flags), _text(text)
    search = getattr(compiled, method)
    return reading_budget.current().timed(lambda timeout: search(subject, timeout=timeout), _text(pattern), subject)


def check_patterns(path: str) -> None:
    """Raise PatternError for a bad pattern in an XPath. A function is called only where the page matches the steps before it, so
    such a file would fail on some pages only.
    """
    for quoted in _QUOTED_PATTERN.findall(path):
        compile_pattern(quoted[1:-1])


def _compiled(pattern: str, ignores_case: bool) -> Any:
    try:
        return compile_pattern(pattern, regex.IGNORECASE if ignores_case else 0)
    except PatternError as error:
        raise UnreadablePage(f"a selector takes {pattern[:60]!r} for a regular expression: {error}") from None


def _text(value: Any) -> str:
    """Return an XPath argument as a string: of a set of nodes the first one's."""
    if isinstance(value, list):
        return _text(value[0]) if value else ""
    return str(_STRING(value)) if isinstance(value, etree._Element) else str(value)


def _element(text: str) -> Any:
    element = etree.Element("match")
    element.text = xml_text(text)
    return element


FUNCTIONS = {(_URI, "test"): _test, (_URI, "match"): _match, (_URI, "replace"): _replace}
