"""Selectors: JMESPath for JSON, CSS or XPath for HTML and XML, and regular expressions, each compiled once.

Fields are many: 20 rows of 8 fields make 160 selections for a page. So CSS is translated by parsel and compiled by lxml once,
and a plain path of JSON keys is walked without JMESPath (0.2 µs in place of 4 µs for a key).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Literal

import cssselect
import jmespath
import regex
from cssselect import SelectorError, parser
from lxml import etree
from parsel.csstranslator import GenericTranslator, HTMLTranslator

from forum_reader.errors import UnreadablePage
from forum_reader.reading import parse_body

PatternError = regex.error


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str, flags: int = 0) -> Any:
    """Compile a pattern with the package `regex`. Raises PatternError, also for brackets nested too deep: the compiler
    recurses for each, and 500 of them end in RecursionError.
    """
    try:
        return regex.compile(pattern, flags)
    except RecursionError:
        raise PatternError("its brackets are nested too deep") from None


_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def xml_text(text: str | None) -> str | None:
    """Return `text` without the characters that XML forbids. libxml2's HTML parser keeps them, as bytes and as `&#8;`; lxml
    raises ValueError where such a text is put into another element.
    """
    return text and _REFUSED.sub("", text)


_URI = "http://exslt.org/regular-expressions"
NAMESPACES = {"re": _URI}
_QUOTED = """'[^']*'|"[^"]*\""""
_QUOTED_PATTERN = regex.compile(rf"""\bre:test\s*\((?:[^,()'"]|\([^()]*\)|{_QUOTED})*,\s*({_QUOTED})""")
_STRING = etree.XPath("string()", smart_strings=False)


def _test(_: Any, text: Any, pattern: Any, flags: str = "") -> bool:
    expression, subject = _text(pattern), _text(text)
    try:
        compiled = compile_pattern(expression, regex.IGNORECASE if "i" in flags else 0)
    except PatternError as error:
        raise UnreadablePage(f"a selector takes {expression[:60]!r} for a regular expression: {error}") from None
    return parse_body.current().search(compiled, expression, subject) is not None


def check_patterns(path: str) -> None:
    """Raise PatternError for a bad pattern in an XPath. A function is called only where the page matches the steps before it, so
    such a file would fail on some pages only.
    """
    for quoted in _QUOTED_PATTERN.findall(path):
        compile_pattern(quoted[1:-1])


def _text(value: Any) -> str:
    """Return an XPath argument as a string: of a set of nodes the first one's."""
    if isinstance(value, list):
        return _text(value[0]) if value else ""
    return str(_STRING(value)) if isinstance(value, etree._Element) else str(value)


FUNCTIONS = {(_URI, "test"): _test}


Syntax = Literal["json", "html", "xml"]
Found = list[Any]
"""A selector's matches: values of JSON (never None), or lxml elements and strings."""
Finder = Callable[[Any], Found]

_KEY = r"[A-Za-z_]\w*(?:\[\d+\])?"
_PLAIN_PATH = re.compile(rf"{_KEY}(?:\.{_KEY})*(?: \|\| {_KEY}(?:\.{_KEY})*)*", re.ASCII)
_XPATH_START = re.compile(r"/|\.\.?(?:/|$)|\(|(?:re:)?[a-z][a-z-]*\(")  # also of a function: CSS has a colon before its own


def compiled(syntax: Syntax, selector: str) -> Finder:
    """Return a function from a node to the matches of `selector` in it. Raises ValueError for a selector that does
    not compile.
    """
    return _json(selector) if syntax == "json" else _of_elements(selector, is_xml=syntax == "xml")


def is_xpath(selector: str) -> bool:
    """Return True if a selector of HTML is XPath, and not CSS."""
    return _XPATH_START.match(selector) is not None


@lru_cache(maxsize=4096)
def _json(selector: str) -> Finder:
    if _PLAIN_PATH.fullmatch(selector):
        return _walk([re.findall(r"[^.\[\]]+", path) for path in selector.split(" || ")])
    try:
        search = jmespath.compile(selector).search
    except jmespath.exceptions.JMESPathError as exc:
        raise ValueError(f"is not a JMESPath: {_first_line(exc)}") from exc

    def find(node: Any) -> Found:
        try:
            value = search(node)
        except jmespath.exceptions.JMESPathError:  # a function got a value of a wrong type: the field is not there
            return []
        return [] if value is None else [value]

    return find


def _walk(paths: list[list[str]]) -> Finder:
    """Return a finder of the first path whose value JMESPath takes for true, else of the last one's value."""
    steps: list[list[Any]] = [[int(key) if key.isdigit() else key for key in path] for path in paths]

    def walk(node: Any) -> Found:
        value = None
        for path in steps:
            value = node
            for key in path:
                if not isinstance(value, list if isinstance(key, int) else dict):
                    value = None
                    break
                try:
                    value = value[key]
                except LookupError:
                    value = None
                    break
            if value or (value == 0 and value is not False):
                return [value]
        return [] if value is None else [value]

    return walk


@lru_cache(maxsize=4096)
def _of_elements(selector: str, *, is_xml: bool) -> Finder:
    try:
        parts = ((frozenset[str](), selector),) if is_xpath(selector) else _parts(selector, is_xml=is_xml)
        finder = HtmlFinder(parts)
        check_patterns(finder.path)
        finder(etree.Element("probe"))  # an unknown function or prefix is only found when it is evaluated
    except (SelectorError, etree.XPathError, ValueError, PatternError) as exc:
        raise ValueError(f"is no {'XPath' if is_xpath(selector) else 'CSS selector'}: {_first_line(exc)}") from exc
    return finder


def _parts(selector: str, *, is_xml: bool) -> tuple[tuple[frozenset[str], str], ...]:
    """Return, for each part of a CSS selector, the classes without which a page has no match, and the path."""
    translator = GenericTranslator() if is_xml else HTMLTranslator()  # names of HTML's elements are small letters
    every = cssselect.parse(selector)
    needs = [frozenset[str]() if is_xml else frozenset(_classes(one.parsed_tree)) for one in every]
    return tuple(
        (need, translator.selector_to_xpath(one, translate_pseudo_elements=True)) for need, one in zip(needs, every, strict=True)
    )


_OF_CSS = "descendant-or-self::"  # all paths of CSS begin so, and select nodes


_CLASSES = etree.XPath("//@class", smart_strings=False)
_NAMES = re.compile(r"[^ \t\r\n]+")  # XPath's white space


def class_names(root: Any) -> frozenset[str]:
    """Return the classes of the elements of a page."""
    return frozenset(_NAMES.findall("\n".join(set(_CLASSES(root)))))


class HtmlFinder:
    """A selector of HTML. `parts`: of those separated by commas, the needed classes and the path; most alternatives in a profile
    are for other skins than the page's.
    """

    __slots__ = ("_first", "_search", "parts", "path")

    def __init__(self, parts: tuple[tuple[frozenset[str], str], ...]) -> None:
        self.parts = parts
        self.path = " | ".join(path for _, path in parts)
        self._search = _xpath(self.path)
        self._first: etree.XPath | None = None

    def __call__(self, node: Any) -> Found:
        found = self._search(node)
        return found if isinstance(found, list) else [found]  # functions give a string, a number or a boolean

    def first(self, root: Any) -> Found:
        """Return the first match of CSS, where the search ends, or all matches of XPath."""
        if self._first is None:
            self._first = _xpath(f"({_below_root(self.path)})[1]") if self.path.startswith(_OF_CSS) else self._search
        found = self._first(root)
        return found if isinstance(found, list) else [found]

    def on_page(self, classes: frozenset[str]) -> HtmlFinder | None:
        """Return the selector without the parts that a page with these classes has no match of; None where none is left."""
        left = tuple(path for needs, path in self.parts if needs <= classes)
        return self if len(left) == len(self.parts) else _of_paths(left) if left else None


def _below_root(path: str) -> str:
    """Return a path of CSS that begins with `html` without the search for it: it is the root of a page."""
    return path.removeprefix("descendant-or-") if path.startswith(f"{_OF_CSS}html[") and " | " not in path else path


@lru_cache(maxsize=4096)
def _of_paths(paths: tuple[str, ...]) -> HtmlFinder:
    return HtmlFinder(tuple((frozenset(), path) for path in paths))


def _xpath(path: str) -> etree.XPath:
    return etree.XPath(path, namespaces=NAMESPACES, extensions=FUNCTIONS, regexp=False, smart_strings=False)


def _classes(tree: Any) -> Iterator[str]:
    """Yield the classes of the elements of a selector, without those in `:not()` and `:has()`."""
    while not isinstance(tree, parser.Element):
        if isinstance(tree, parser.CombinedSelector):
            yield from _classes(tree.subselector)
        elif isinstance(tree, parser.Class):
            yield tree.class_name
        tree = tree.selector


def _first_line(exc: Exception) -> str:
    return str(exc).split("\n", 1)[0] or type(exc).__name__
