"""Model of one field: how its value is taken from a page; the tables of `[pages.….fields]`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from forum_reader.dates.short_forms import check_form
from forum_reader.patterns import PatternError, compile_pattern

from . import url_templates
from .selectors import Finder, Syntax, compiled, is_xpath

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
    def _compiles(self) -> Self:
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
    without: tuple[str, ...] = Field(default=(), description="HTML: selectors of parts that are cut out first, as a signature")
    value: str | None = Field(default=None, description="JSON: the value taken from the row of `lookup` with this key")

    @cached_property
    def cutters(self) -> tuple[Finder, ...]:
        """Return `without`, compiled: CSS selectors as one."""
        css = ", ".join(selector for selector in self.without if not is_xpath(selector))
        return tuple(compiled("html", selector) for selector in (css, *filter(is_xpath, self.without)) if selector)

    @field_validator("regex")
    @classmethod
    def _is_regex(cls, regex: str | None) -> str | None:
        try:
            compile_pattern(regex or "")
        except PatternError as exc:
            raise ValueError(f"is not a regular expression: {exc}") from None
        return regex

    @field_validator("formats")
    @classmethod
    def _are_forms(cls, formats: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_form(form) for form in formats)

    @model_validator(mode="after")
    def _can_cut(self) -> Self:
        if self.without and self.syntax == "json":
            raise ValueError("without is for pages of HTML and XML")
        for selector in self.without:
            try:
                compiled(self.syntax, selector)
            except ValueError as exc:
                raise ValueError(f"without: {selector!r} {exc}") from None
        return self

    @model_validator(mode="after")
    def _has_parts(self) -> Self:
        if self.join is not None and (self.regex is None or compile_pattern(self.regex).groups < 2):
            raise ValueError("join is put between the groups of `regex`: give one of two or more, as /(\\w+)/t(\\d+)")
        if self.prefix is not None:
            url_templates.check_text(self.prefix, ("thread",))
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


def with_syntax(value: Any, syntax: str) -> Any:
    """Return a field of a file (a selector, a list of selectors, a table) as a table with its syntax."""
    if isinstance(value, str):
        value = {"select": [value]}
    elif isinstance(value, list | tuple):
        value = {"select": value}
    elif isinstance(value, Mapping):
        lists = ("select", "without", "formats")  # a single value need not be a list
        value = {key: [one] if key in lists and isinstance(one, str) else one for key, one in value.items()}
    return {**value, "syntax": syntax} if isinstance(value, Mapping) else value
