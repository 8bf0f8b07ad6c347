"""Fields of a site file: how each value is taken from a page, the kind of the value, and the fields of each kind of page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from forum_reader.dates.read_date import check_form

from . import page_requests
from .selectors import Finder, PatternError, Syntax, compile_pattern, compiled, is_xpath

OWN_PROFILE: Mapping[str, Any] = MappingProxyType({})
"""Context of a profile of Trawl's own, whose selectors and expressions are right: each is compiled when it is first used, as a
page needs a third of them, and compiling all is most of the time that a profile takes to be read.
"""
Kind = Literal["text", "int", "date", "url", "html", "bool", "id"]


class Select(BaseModel):
    """One selector, or several of which the first with a match counts."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, populate_by_name=True)

    select: tuple[str, ...] = Field(default=(), description="the selector; of a list the first with a match counts")
    syntax: Syntax = Field(default="html", exclude=True)

    @cached_property
    def finders(self) -> tuple[Finder, ...]:
        """Return the selectors, compiled."""
        return tuple(compiled(self.syntax, selector) for selector in self.select)

    @model_validator(mode="after")
    def _compiles(self, info: ValidationInfo) -> Self:
        if info.context is OWN_PROFILE:
            return self
        for selector in self.select:
            try:
                compiled(self.syntax, selector)
            except ValueError as exc:
                raise ValueError(f"{selector!r} {exc}") from None
        return self


class FieldSpec(Select):
    """A field: its place on the page, and the kind of its value."""

    as_: Kind | None = Field(default=None, alias="as", description="kind of the value; without it that of the field's name")
    regex: str | None = Field(default=None, description="the part that counts: the first group of the match, or the whole match")
    join: str | None = Field(
        default=None, min_length=1, max_length=8,
        description="an id of several parts: separator between the groups of `regex`, all of which then count",
    )  # fmt: skip
    prefix: str | None = Field(
        default=None, description="an `id`: text put before it; `{thread}` where the id is unique only within its thread"
    )
    default: str | int | bool | None = Field(default=None, description="the value where the page has none")
    add: int = Field(default=0, description='added to an `int`, as where "posts" counts the opening post: `add = -1`')
    formats: tuple[str, ...] = Field(default=(), description='forms of a `date` in Python\'s letters, as in `"%d.%m.%Y, %H:%M"`')
    lookup: str | None = Field(default=None, description="JSON: rows of the page in which the value is a key, as `users`")
    key: str = Field(default="id", description="JSON: place of the key in a row of `lookup`")
    remove: tuple[str, ...] = Field(default=(), description="HTML: selectors of parts that are cut out first, as a signature")
    value: str | None = Field(default=None, description="JSON: the value taken from the row of `lookup` with this key")

    @cached_property
    def cutters(self) -> tuple[Finder, ...]:
        """Return `remove`, compiled: CSS selectors as one."""
        css = ", ".join(selector for selector in self.remove if not is_xpath(selector))
        return tuple(compiled("html", selector) for selector in (css, *filter(is_xpath, self.remove)) if selector)

    @field_validator("regex")
    @classmethod
    def _is_regex(cls, regex: str | None, info: ValidationInfo) -> str | None:
        if regex and info.context is not OWN_PROFILE:
            try:
                compile_pattern(regex)
            except PatternError as exc:
                raise ValueError(f"is not a regular expression: {exc}") from None
        return regex

    @field_validator("formats")
    @classmethod
    def _are_forms(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_form(form) for form in formats)

    @model_validator(mode="after")
    def _can_cut(self) -> Self:
        if self.remove and self.syntax == "json":
            raise ValueError("remove is for pages of HTML and XML")
        for selector in self.remove:
            try:
                compiled(self.syntax, selector)
            except ValueError as exc:
                raise ValueError(f"remove: {selector!r} {exc}") from None
        return self

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if self.join is not None and (self.regex is None or compile_pattern(self.regex).groups < 2):
            raise ValueError("join is put between the groups of `regex`: give one of two or more, as /(\\w+)/t(\\d+)")
        if self.prefix is not None:
            page_requests.check_text(self.prefix, ("thread",))
        return self

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.select and self.default is None:
            raise ValueError("has no `select`: write the selector, or a `default`")
        if self.lookup is not None:
            if self.syntax != "json":
                raise ValueError("lookup is for JSON pages")
            if self.value is None:
                raise ValueError("lookup needs `value`: the value to take from the row that was looked up")
            for selector in (self.lookup, self.key, self.value):
                compiled("json", selector)
        return self


def _with_syntax(value: Any, syntax: str) -> Any:
    """Return a field of a file (a selector, a list of selectors, a table) as a table with its syntax."""
    if isinstance(value, str):
        value = {"select": [value]}
    elif isinstance(value, list | tuple):
        value = {"select": value}
    elif isinstance(value, Mapping):
        lists = ("select", "remove", "formats")  # a single value need not be a list
        value = {key: [one] if key in lists and isinstance(one, str) else one for key, one in value.items()}
    return {**value, "syntax": syntax} if isinstance(value, Mapping) else value


KINDS: dict[str, Kind] = {
    "id": "id", "forum_id": "id", "parent_id": "id", "thread": "id",
    "url": "url", "next": "url", "load_more": "url",
    "reply_count": "int", "views": "int", "threads": "int", "position": "int", "pages": "int", "total": "int", "current": "int",
    "number": "id", "parent_number": "id",
    "created_at": "date", "edited_at": "date", "last_activity": "date",
    "sticky": "bool", "deleted": "bool", "has_more": "bool", "opening": "bool",
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


NEEDED: Mapping[str, tuple[str, ...]] = {
    "index": ("id",),
    "list": ("id",),
    "thread": ("body",),
    "comments": ("id", "body"),
    "more": ("id", "body"),
    "recent": ("thread",),
}
DISPENSABLE = frozenset({"more", "recent"})
"""Kinds of pages that a site can be watched without: they never open its breaker."""


class Fields(BaseModel):
    """Fields of a row."""

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    @model_validator(mode="after")
    def _can_be_stored(self) -> Self:
        """Check each field's kind against its name: a date that is kept as text could not be stored, and would fail each page."""
        for name, field in self.declared:
            check_kind(name, field)
        return self

    @cached_property
    def declared(self) -> tuple[tuple[str, FieldSpec], ...]:
        """Return the fields that the site file declares, by name."""
        fields = ((name, getattr(self, name)) for name in type(self).model_fields)
        return tuple((name, field) for name, field in fields if field is not None)


def give_syntax(page: type[BaseModel], table: Mapping[str, Any], syntax: str, others: Mapping[str, str]) -> dict[str, Any]:
    """Return the table of a page, in which each selector has its syntax; `others`: the syntax of some keys. `false` removes a
    profile's value, if there is one.
    """
    given, selecting, of_fields = dict(table), _keys_of(page, Select), _keys_of(page, Fields)
    for key, value in table.items():
        if key in selecting and value is False:
            del given[key]
        elif key in selecting:
            given[key] = _with_syntax(value, others.get(key, syntax))
        elif key in of_fields and isinstance(value, Mapping):
            given[key] = {name: _with_syntax(field, syntax) for name, field in value.items() if field is not False}
    return given


@cache
def _keys_of(page: type[BaseModel], model: type[BaseModel]) -> frozenset[str]:
    """Return the keys of a page whose values are of a model."""
    types = {key: (field.annotation, *get_args(field.annotation)) for key, field in page.model_fields.items()}
    return frozenset(key for key, of in types.items() if any(isinstance(one, type) and issubclass(one, model) for one in of))


class IndexFields(Fields):
    """A forum in the index."""

    id: FieldSpec = Field(description="as `{forum}` of the other pages")
    name: FieldSpec | None = Field(default=None, description="its name")
    url: FieldSpec | None = Field(default=None, description="its address")
    parent_id: FieldSpec | None = Field(default=None, description="its forum")
    threads: FieldSpec | None = Field(default=None, description="number of its threads")
    last_activity: FieldSpec | None = Field(default=None, description="time of the last message in it")


class ListFields(Fields):
    """A thread in the list of a forum."""

    id: FieldSpec = Field(description="as `{thread}` of the other pages")
    url: FieldSpec | None = Field(default=None, description="its address")
    title: FieldSpec | None = Field(default=None, description="its title")
    author: FieldSpec | None = Field(default=None, description="author of the opening post")
    reply_count: FieldSpec | None = Field(default=None, description="replies without the opening post")
    created_at: FieldSpec | None = Field(default=None, description="time of the opening post")
    last_activity: FieldSpec | None = Field(default=None, description="time of the last message in it")
    sticky: FieldSpec | None = Field(default=None, description="true if it stays on top of the list, and so ends no scan")
    token: FieldSpec | None = Field(
        default=None, description="changes whenever the thread does; without it reply count and last activity"
    )


class PostFields(Fields):
    """An opening post."""

    id: FieldSpec | None = Field(default=None, description="the thread's own, where the list has another: it is stored")
    forum_id: FieldSpec | None = Field(default=None, description="its forum")
    title: FieldSpec | None = Field(default=None, description="its title")
    body: FieldSpec | None = Field(default=None, description="its text")
    author: FieldSpec | None = Field(default=None, description="its author")
    created_at: FieldSpec | None = Field(default=None, description="its time")
    edited_at: FieldSpec | None = Field(default=None, description="time of the last edit")
    views: FieldSpec | None = Field(default=None, description="number of views")
    reply_count: FieldSpec | None = Field(default=None, description="replies without the opening post")
    last_activity: FieldSpec | None = Field(default=None, description="time of the last message in the thread")
    sticky: FieldSpec | None = Field(default=None, description="true if it stays on top of the list")
    deleted: FieldSpec | None = Field(default=None, description="true if only a placeholder is left")


class CommentFields(Fields):
    """A comment."""

    id: FieldSpec = Field(description="its own, which never changes")
    body: FieldSpec = Field(description="its text")
    parent_id: FieldSpec | None = Field(default=None, description="the comment that it answers")
    number: FieldSpec | None = Field(
        default=None, description="its number or mark on the page, by which `parent_number` names it"
    )
    parent_number: FieldSpec | None = Field(
        default=None, description="the number of the comment that it answers, on the same page; where `parent_id` finds nothing"
    )
    author: FieldSpec | None = Field(default=None, description="its author")
    created_at: FieldSpec | None = Field(default=None, description="its time")
    edited_at: FieldSpec | None = Field(default=None, description="time of the last edit")
    deleted: FieldSpec | None = Field(default=None, description="true if only a placeholder is left")
    position: FieldSpec | None = Field(default=None, description="its place in the thread from 1; else counted")
    load_more: FieldSpec | None = Field(
        default=None,
        description="where a comment's answers are left out: the address of their page, or `{more}` of `[pages.more]`",
    )


class RecentFields(Fields):
    """A message among the newest of the site, or a thread among those that were active last."""

    thread: FieldSpec = Field(description="its thread, as `{thread}` of the other pages")
    forum_id: FieldSpec | None = Field(default=None, description="its forum; without it, unknown threads are left to the lists")
    id: FieldSpec | None = Field(default=None, description="of a message: its own, as on the thread's page")
    url: FieldSpec | None = Field(default=None, description="the thread's address, where the list has it, too")
    token: FieldSpec | None = Field(default=None, description="of a thread: the list's `token`")
    reply_count: FieldSpec | None = Field(default=None, description="of the thread: replies without the opening post")
    opening: FieldSpec | None = Field(default=None, description="true if it opens its thread, which is then read whole")
    title: FieldSpec | None = Field(default=None, description="not used any more: new threads are read")
    body: FieldSpec | None = Field(
        default=None,
        description="its text, as on the thread's page: a reply is then stored from here, and its thread not read",
    )
    parent_id: FieldSpec | None = Field(default=None, description="the comment that it answers")
    number: FieldSpec | None = Field(default=None, description="its number in the thread, by which `parent_number` names it")
    parent_number: FieldSpec | None = Field(
        default=None, description="the number of the comment that it answers; the thread is read where no row has it"
    )
    author: FieldSpec | None = Field(default=None, description="its author")
    created_at: FieldSpec | None = Field(default=None, description="its time; of a thread: time of the last message in it")
    edited_at: FieldSpec | None = Field(default=None, description="time of the last edit")
    deleted: FieldSpec | None = Field(default=None, description="true if only a placeholder is left")
