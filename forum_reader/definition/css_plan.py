"""Plans of simple CSS selectors as index lookups, for a page that is searched with many selectors.

An XPath visits each element of a page or row for each selector. A plan looks up the elements with a class, an id, an attribute
or a tag in an index of the page (`forum_reader/reading/element_index.py`): a compound without a match on the page costs one
lookup for all rows. Simple are: tags, classes, ids, attributes, `:not()` and `:has()` of one compound, `:first-child`,
`:last-child`, the combinators but `~`, `::attr()`; of XPath `.`, `./@name` and a test of a row's class. Other selectors have no
plan: their XPath is used. Both find the same elements.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

import cssselect
from cssselect import parser

Operator = Literal["", "=", "~=", "^=", "$=", "*="]
Test = Callable[[Any], bool]
"""Returns True if an element passes."""

_SIMPLE_NAME = re.compile(r"[a-z_][a-z0-9_-]*")
_ATTRIBUTE = re.compile(r"\./@([a-z_][a-z0-9_-]*)(?:\[starts-with\(\., '([\w-]+)'\)\])?", re.ASCII)
_ITSELF = re.compile(
    r"\./self::(\*|[a-z][a-z0-9]*)\[contains\((?:@class, '([\w-]+)'|concat\(' ', @class, ' '\), ' ([\w-]+) ')\)\]", re.ASCII
)
_TOKENS = re.compile(r"[^ \t\r\n]+")  # XPath's white space

_OF_MANY = frozenset({"a", "div", "span", "p", "i", "b", "br", "img", "li", "ul", "dl", "dt", "dd", "td", "tr", "svg", "path"})

_WITH_MANY = frozenset({"href", "src", "style", "title", "alt", "type"})  # attributes that a test reads faster than a lookup


class Key(NamedTuple):
    """Key of a lookup: a tag (`operator` None), or an attribute, with `operator` "" for any value."""

    name: str
    operator: Operator | None = None
    value: str = ""

    def fits(self, given: str) -> bool:
        """Return True if an attribute's value matches."""
        value, operator = self.value, self.operator
        if operator == "~=":
            return value in given and (value == given or value in _TOKENS.findall(given))
        if operator == "=":
            return given == value
        if operator == "^=":
            return given.startswith(value)
        if operator == "$=":
            return given.endswith(value)
        return operator == "" or value in given

    def is_of(self, element: Any) -> bool:
        """Return True if an element has the key."""
        if self.operator is None:
            return bool(element.tag == self.name)
        given = element.get(self.name)
        return given is not None and self.fits(given)


class Compound(NamedTuple):
    """`div.post[id]`: one element. `combinator` stands before it. It is looked up by `key`, and passes `tests`."""

    combinator: str
    key: Key
    tests: tuple[Test, ...]


Listed = list[tuple[Compound, list[int]]]
"""A chain on a page: each compound, and the places of all elements that have its key."""


class Index(Protocol):
    """The elements of a page, each at a place in the page's order."""

    def places(self, key: Key) -> list[int]:
        """Return the places of all elements that have the key."""

    def within(self, places: list[int], outer: list[int]) -> list[int]:
        """Return the `places` within one of the elements `outer`, without these elements."""

    def parent(self, place: int) -> int:
        """Return the parent's place; -1 for the root."""

    def following(self, place: int) -> int:
        """Return the next sibling's place; -1 where it is the last one."""

    def element(self, place: int) -> Any:
        """Return the element at a place."""


class Plan(NamedTuple):
    """Plan of a selector: `chains` are separated by commas. `itself`: the plan selects the given node, if that passes `tests`.
    `attribute`: the value of this attribute is taken, not the element. `has_siblings`: the plan is for a whole page, as a row's
    own sibling is not in the row.
    """

    chains: tuple[tuple[Compound, ...], ...]
    attribute: str | None = None
    itself: bool = False
    has_siblings: bool = False
    tests: tuple[Test, ...] = ()

    def of_itself(self, node: Any) -> list[Any]:
        """Return the match for the given node, where the plan is for the node alone."""
        return self.taken([node]) if _passes(node, self.tests) else []

    def listed(self, index: Index) -> list[Listed]:
        """Return the chains that may match on a page: each compound with the places of its key, of which none is empty."""
        found = []
        for chain in self.chains:
            listed: Listed = []
            for compound in chain:
                if not (places := index.places(compound.key)):
                    break
                listed.append((compound, places))
            else:
                found.append(listed)
        return found

    def find(self, index: Index, listed: list[Listed], scopes: list[int]) -> list[int]:
        """Return the places of matches in the elements at `scopes`, including themselves, in the page's order. No scope is
        within another one; `listed` is of this index.
        """
        if not listed:
            return []
        places = _matches(listed[0], index, scopes)
        if len(listed) > 1:
            places = sorted({*places, *(place for chain in listed[1:] for place in _matches(chain, index, scopes))})
        return places

    def taken(self, elements: list[Any]) -> list[Any]:
        """Return the elements, or the values of the attribute."""
        if self.attribute is None:
            return elements
        return [value for element in elements if (value := element.get(self.attribute)) is not None]


@lru_cache(maxsize=4096)
def plan_of(selector: str, *, is_xpath: bool) -> Plan | None:
    """Return the plan of a selector; None where it is not simple."""
    if is_xpath:
        return _plan_of_xpath(selector)
    try:
        selectors = cssselect.parse(selector)
        chains = tuple(_chain(one.parsed_tree) for one in selectors)
        taken = {_taken(one.pseudo_element) for one in selectors}
    except (cssselect.SelectorError, _NotSimple):
        return None
    siblings = any(compound.combinator == "+" for chain in chains for compound in chain)
    return Plan(chains, attribute=taken.pop(), has_siblings=siblings) if len(taken) == 1 else None


def _plan_of_xpath(selector: str) -> Plan | None:
    if selector == ".":
        return Plan((), itself=True)
    if attribute := _ATTRIBUTE.fullmatch(selector):
        start = (Key(attribute[1], "^=", attribute[2]).is_of,) if attribute[2] else ()
        return Plan((), attribute=attribute[1], itself=True, tests=start)
    if itself := _ITSELF.fullmatch(selector):
        tag, part, name = itself.groups()
        tests: list[Test] = [] if tag == "*" else [Key(tag).is_of]
        tests.append(Key("class", "*=", part).is_of if part else lambda element: f" {name} " in f" {element.get('class') or ''} ")
        return Plan((), itself=True, tests=tuple(tests))
    return None


def _matches(chain: Listed, index: Index, scopes: list[int]) -> list[int]:
    """Return the places of elements that end a chain, found from left to right."""
    found = scopes
    for compound, places in chain:
        combinator, _, tests = compound
        if combinator == "+":
            kept = _next_to(places, found, index)
        else:
            kept = index.within(places, found)
            if combinator == ">":
                parents = frozenset(found)
                kept = [place for place in kept if index.parent(place) in parents]
            elif not combinator and (own := [scope for scope in scopes if _has(places, scope)]):
                kept = sorted([*own, *kept])
        found = [place for place in kept if _passes(index.element(place), tests)] if tests else kept
        if not found:
            break
    return found


def _has(places: list[int], place: int) -> bool:
    at = bisect_left(places, place)
    return at < len(places) and places[at] == place


def _next_to(places: list[int], found: list[int], index: Index) -> list[int]:
    following = (index.following(place) for place in found)
    return sorted(place for place in following if _has(places, place))


def _passes(element: Any, tests: tuple[Test, ...]) -> bool:
    for test in tests:  # noqa: SIM110 - `all` of a generator takes twice the time
        if not test(element):
            return False
    return True


class _NotSimple(ValueError):
    """The selector has no plan."""


def _taken(pseudo: Any) -> str | None:
    """Return the attribute of `::attr(name)`."""
    if pseudo is None:
        return None
    if getattr(pseudo, "name", "") == "attr" and pseudo.argument_types() in (["IDENT"], ["STRING"]):
        return _name(pseudo.arguments[0].value)
    raise _NotSimple


def _chain(tree: Any) -> tuple[Compound, ...]:
    found = []
    while isinstance(tree, parser.CombinedSelector):
        if tree.combinator not in " >+":  # `~`: in time that grows with the square of the siblings
            raise _NotSimple
        found.append(_compound(tree.subselector, tree.combinator))
        tree = tree.selector
    return (_compound(tree, ""), *reversed(found))


def _compound(tree: Any, combinator: str = "") -> Compound:
    keys: list[Key] = []
    tests: list[Test] = []
    while not isinstance(tree, parser.Element):
        one = _simple(tree)
        (keys if isinstance(one, Key) else tests).append(one)  # type: ignore[arg-type]
        tree = tree.selector
    if tree.namespace is not None:
        raise _NotSimple
    if tree.element is not None:
        keys.append(Key(_name(tree.element)))
    if not keys:
        keys.append(Key("*"))
    keys.sort(key=_cost)
    return Compound(combinator, keys[0], (*(key.is_of for key in keys[1:]), *tests))


def _cost(key: Key) -> int:
    """Return the order of a key's cost: a page's classes are known in any case, and there are few elements of most tags."""
    if key.operator is None:
        return 5 if key.name == "*" else 3 if key.name in _OF_MANY else 1
    if key.name in _WITH_MANY:
        return 4
    return 0 if key.name == "class" and key.operator else 2


def _simple(tree: Any) -> Key | Test:
    if isinstance(tree, parser.Class):
        return Key("class", "~=", tree.class_name)
    if isinstance(tree, parser.Hash):
        return Key("id", "=", tree.id)
    if isinstance(tree, parser.Attrib):
        return _attribute(tree)
    if isinstance(tree, parser.Negation):
        inner = _alone(tree.subselector)
        return lambda element: not inner(element)
    if isinstance(tree, parser.Pseudo) and tree.ident in ("first-child", "last-child"):
        before = tree.ident == "first-child"
        return lambda element: next(element.itersiblings("*", preceding=before), None) is None
    if isinstance(tree, parser.Relation) and [combinator.value for combinator, _ in tree.arguments] == [" "]:
        inner = _alone(tree.arguments[0][1].parsed_tree)
        return lambda element: any(inner(one) for one in element.iterdescendants("*"))
    raise _NotSimple


def _alone(tree: Any) -> Test:
    """Return the test of a compound without combinators."""
    if isinstance(tree, parser.Selector | parser.CombinedSelector):
        raise _NotSimple
    _, key, tests = _compound(tree)
    is_any = key == Key("*")
    return lambda element: (is_any or key.is_of(element)) and _passes(element, tests)


def _attribute(tree: Any) -> Key:
    name, value = _name(tree.attrib), "" if tree.value is None else tree.value.value
    operator: Any = "" if tree.operator == "exists" else tree.operator
    if tree.namespace is not None or tree.flag is not None or operator not in ("", "=", "~=", "^=", "$=", "*="):
        raise _NotSimple
    if operator not in ("", "=") and not _TOKENS.fullmatch(value):
        raise _NotSimple
    return Key(name, operator, value)


def _name(given: str) -> str:
    name = given.lower()
    if not _SIMPLE_NAME.fullmatch(name):
        raise _NotSimple
    return name
