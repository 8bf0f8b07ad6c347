"""Kinds of fields: dates, numbers, ids. A field that could not be stored is refused when the file is loaded."""

from __future__ import annotations

from .fields import FieldSpec, Kind

KINDS: dict[str, Kind] = {
    "id": "id", "forum_id": "id", "parent_id": "id", "thread": "id",
    "url": "url", "next": "url", "load_more": "url",
    "reply_count": "int", "views": "int", "threads": "int", "position": "int", "pages": "int", "total": "int", "current": "int",
    "number": "id", "parent_number": "id",
    "created_at": "date", "edited_at": "date", "last_activity": "date",
    "sticky": "bool", "deleted": "bool", "more": "bool", "opening": "bool",
}  # fmt: skip
"""Kind of a field, by its name; other fields are text."""

_STRINGS: frozenset[Kind] = frozenset({"text", "html", "id", "url"})
_AS: dict[Kind, frozenset[Kind]] = {
    "id": _STRINGS, "text": _STRINGS, "url": frozenset({"url", "text"}), "int": frozenset({"int"}),
    "date": frozenset({"date"}), "bool": frozenset({"bool"}), "html": _STRINGS,
}  # fmt: skip
_DEFAULTS: dict[Kind, tuple[type, ...]] = {"int": (int,), "bool": (bool, int, str), "date": ()}
_NAMED = {"id": "an id", "text": "text", "url": "an address", "int": "a number", "date": "a date", "bool": "true or false"}


def check_kind(name: str, field: FieldSpec) -> None:
    """Raise ValueError for a field whose kind does not match its name: a date that is kept as text could not be stored, and
    would fail each page.
    """
    is_a = KINDS.get(name, "text")
    fix = "take the part that counts with `regex`, or give its form with `formats`" if is_a == "date" else "leave it out"
    if field.as_ is not None and field.as_ not in _AS[is_a]:
        raise ValueError(f'{name}: as = "{field.as_}" cannot be stored: {name} is {_NAMED[is_a]}; {fix}')
    if (field.join or field.prefix) and is_a != "id":
        key = "join" if field.join else "prefix"
        raise ValueError(f"{name}: {key} is for ids: {name} is {_NAMED[is_a]}; leave it out")
    if field.default is None:
        return
    if is_a == "date" or type(field.default) not in _DEFAULTS.get(is_a, (str,)):
        raise ValueError(f"{name}: default = {field.default!r} cannot be stored: {name} is {_NAMED[is_a]}; leave it out")
