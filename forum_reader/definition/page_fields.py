"""Fields that each kind of page must have to be of any use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .fields import FieldSpec
from .kinds import check_kind

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
    title: FieldSpec | None = Field(
        default=None,
        description="its thread's title: a new thread that is whole on this page is then stored from here, and not read",
    )
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
