"""What a site file says of each kind of page: its URL, its rows, its fields, and how one gets to the next page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from forums.sites.kinds import check_kind

from . import url_templates
from .fields import FieldSpec, Select, with_syntax
from .selectors import Syntax

_STRICT = ConfigDict(extra="forbid", frozen=True)
PageKind = Literal["index", "list", "thread", "comments", "recent"]


class Fields(BaseModel):
    """What is read of a row."""

    model_config = _STRICT

    @model_validator(mode="after")
    def _can_be_stored(self) -> Self:
        """A field is what its name says: a date that is kept as text could not be stored, and would kill each page."""
        for name, field in self.declared:
            check_kind(name, field)
        return self

    @cached_property
    def declared(self) -> tuple[tuple[str, FieldSpec], ...]:
        """The fields that the site file declares, by name."""
        fields = ((name, getattr(self, name)) for name in type(self).model_fields)
        return tuple((name, field) for name, field in fields if field is not None)


class IndexFields(Fields):
    """A forum in the index."""

    id: FieldSpec = Field(description="as `{forum}` of the other pages")
    name: FieldSpec | None = Field(default=None, description="its name")
    url: FieldSpec | None = Field(default=None, description="its address")
    parent_id: FieldSpec | None = Field(default=None, description="the forum that it is in")
    threads: FieldSpec | None = Field(default=None, description="how many threads it has")
    last_activity: FieldSpec | None = Field(default=None, description="when something was written in it last")


class ListFields(Fields):
    """A thread in the list of a forum."""

    id: FieldSpec = Field(description="as `{thread}` of the other pages")
    url: FieldSpec | None = Field(default=None, description="its address")
    title: FieldSpec | None = Field(default=None, description="its title")
    author: FieldSpec | None = Field(default=None, description="who opened it")
    reply_count: FieldSpec | None = Field(default=None, description="replies without the opening post")
    created_at: FieldSpec | None = Field(default=None, description="when it was opened")
    last_activity: FieldSpec | None = Field(default=None, description="when something was written in it last")
    sticky: FieldSpec | None = Field(default=None, description="whether it stays on top of the list, and so ends no scan")
    token: FieldSpec | None = Field(
        default=None, description="changes whenever the thread does; without it reply count and last activity"
    )


class PostFields(Fields):
    """An opening post."""

    id: FieldSpec | None = Field(default=None, description="the thread's own, where the list has another: it is stored")
    forum_id: FieldSpec | None = Field(default=None, description="the forum that it is in")
    title: FieldSpec | None = Field(default=None, description="its title")
    body: FieldSpec | None = Field(default=None, description="its text")
    author: FieldSpec | None = Field(default=None, description="who wrote it")
    created_at: FieldSpec | None = Field(default=None, description="when")
    edited_at: FieldSpec | None = Field(default=None, description="when it was changed last")
    views: FieldSpec | None = Field(default=None, description="how often it was read")
    reply_count: FieldSpec | None = Field(default=None, description="replies without the opening post")
    last_activity: FieldSpec | None = Field(default=None, description="when something was written in the thread last")
    sticky: FieldSpec | None = Field(default=None, description="whether it stays on top of the list")
    deleted: FieldSpec | None = Field(default=None, description="whether only a placeholder is left")


class CommentFields(Fields):
    """A comment."""

    id: FieldSpec = Field(description="its own, the same for ever")
    body: FieldSpec = Field(description="its text")
    parent_id: FieldSpec | None = Field(default=None, description="the comment that it answers")
    number: FieldSpec | None = Field(
        default=None, description="its number or mark on the page, by which `parent_number` names it"
    )
    parent_number: FieldSpec | None = Field(
        default=None, description="the number of the comment that it answers, on the same page; where `parent_id` finds nothing"
    )
    author: FieldSpec | None = Field(default=None, description="who wrote it")
    created_at: FieldSpec | None = Field(default=None, description="when")
    edited_at: FieldSpec | None = Field(default=None, description="when it was changed last")
    deleted: FieldSpec | None = Field(default=None, description="whether only a placeholder is left")
    position: FieldSpec | None = Field(default=None, description="its place in the thread from 1; else counted")


class RecentFields(Fields):
    """A message among the newest of the site, or a thread among those that were active last."""

    thread: FieldSpec = Field(description="the thread that it is in, as `{thread}` of the other pages")
    forum_id: FieldSpec | None = Field(
        default=None, description="the forum that it is in; without it, threads that are not known are left to the lists"
    )
    id: FieldSpec | None = Field(default=None, description="of a message: its own, as on the thread's page")
    url: FieldSpec | None = Field(default=None, description="the thread's address, where the list has it, too")
    token: FieldSpec | None = Field(default=None, description="of a thread: what the list has for `token`")
    reply_count: FieldSpec | None = Field(default=None, description="of the thread: replies without the opening post")
    opening: FieldSpec | None = Field(default=None, description="whether it opens its thread, which is read whole then")
    body: FieldSpec | None = Field(
        default=None,
        description="its text, as the thread's page has it: then a reply is stored from here, and its thread need not be read",
    )
    parent_id: FieldSpec | None = Field(default=None, description="the comment that it answers")
    number: FieldSpec | None = Field(default=None, description="its number in the thread, by which `parent_number` names it")
    parent_number: FieldSpec | None = Field(
        default=None, description="the number of the comment that it answers; where that is on no row, the thread is read"
    )
    author: FieldSpec | None = Field(default=None, description="who wrote it")
    created_at: FieldSpec | None = Field(default=None, description="when; of a thread: when something was written in it last")
    edited_at: FieldSpec | None = Field(default=None, description="when it was changed last")
    deleted: FieldSpec | None = Field(default=None, description="whether only a placeholder is left")


class Page(BaseModel):
    """What all kinds of pages have."""

    model_config = _STRICT
    _places: ClassVar[frozenset[str]] = frozenset()
    _selecting: ClassVar[frozenset[str]] = frozenset({"container", "gone", "wall"})
    _tables: ClassVar[frozenset[str]] = frozenset({"fields"})

    url: str = Field(description="template of its URL: a path behind `base_url`, or a whole URL")
    format: Syntax = Field(
        default="html", description="`json`: selectors are JMESPath; `html` and `xml` (feeds, sitemaps): they are CSS or XPath"
    )
    container: Select | None = Field(
        default=None, description="what such a page always has: where it is missing, the page is refused"
    )
    gone: Select | None = Field(
        default=None, description="what only the page has that says that this does not exist (any more): it counts as 404"
    )
    wall: Select | None = Field(
        default=None, description="what only a login page, a captcha or an error page has: such a page is refused"
    )

    @model_validator(mode="before")
    @classmethod
    def _give_syntax(cls, page: Any) -> Any:
        """Selectors are checked in the language of their page, each where it stands."""
        if not isinstance(page, Mapping):
            return page
        syntax = page["format"] if page.get("format") in ("json", "xml") else "html"
        told = dict(page)
        for key, value in page.items():
            if value is False and key in cls._selecting:
                del told[key]  # it takes away what a profile has, and may take away what it has not
            elif key in cls._selecting:
                told[key] = with_syntax(value, syntax)
            elif key in cls._tables and isinstance(value, Mapping):
                told[key] = {name: with_syntax(field, syntax) for name, field in value.items() if field is not False}
        return told

    @field_validator("url", "first_url", check_fields=False)
    @classmethod
    def _fillable(cls, template: str | None) -> str | None:
        return None if template is None else url_templates.check(template, cls._places)


class RowsPage(Page):
    """A page of rows, one of a chain of pages."""

    _selecting: ClassVar[frozenset[str]] = Page._selecting | {
        "rows",
        "skip",
        "next",
        "pages",
        "total",
        "cursor",
        "more",
        "current",
        "children",
    }

    first_url: str | None = Field(default=None, description="template of the first page's URL, where it is made differently")
    rows: Select = Field(description="its rows; fields are looked for within a row")
    skip: Select | None = Field(default=None, description="what only rows have within them that are left out, as advertisements")
    next: FieldSpec | None = Field(default=None, description="the link to the next page")
    pages: FieldSpec | None = Field(default=None, description="how many pages there are")
    total: FieldSpec | None = Field(default=None, description="how many rows there are on all pages")
    cursor: FieldSpec | None = Field(default=None, description="what `{cursor}` is for the next page")
    more: FieldSpec | None = Field(default=None, description="whether there is a next page, whose URL is made from its number")
    current: FieldSpec | None = Field(
        default=None, description="the number of this page: another one than was asked for is behind the end, and has no rows"
    )
    per_page: int | None = Field(default=None, ge=1, description="rows of a full page")
    ends: Literal["empty", "short"] = Field(
        default="empty",
        description="which page is the last where none of `next`, `pages`, `total`, `cursor` and `more` is given: "
        "one without rows, or one with fewer than `per_page`",
    )

    @model_validator(mode="after")
    def _can_be_followed(self) -> Self:
        for name in ("next", "pages", "total", "cursor", "more", "current"):
            if (field := getattr(self, name)) is not None:
                check_kind(name, field)
        if "offset" in url_templates.names(self.url) and self.per_page is None:
            raise ValueError("url has {offset}: give `per_page`, the rows of a full page")
        if self.ends == "short" and self.per_page is None:
            raise ValueError('ends = "short" needs `per_page`, the rows of a full page')
        if self.cursor and "cursor" not in url_templates.names(self.url):
            raise ValueError("`cursor` is given, but url has no {cursor} to put it in")
        return self


class IndexPageSpec(RowsPage):
    """The index: the forums of a site."""

    _places: ClassVar[frozenset[str]] = frozenset({"page", "page0", "offset", "per_page", "cursor"})

    fields: IndexFields


class ListPageSpec(RowsPage):
    """A list page: threads of one forum."""

    _places: ClassVar[frozenset[str]] = IndexPageSpec._places | {"forum"}

    fields: ListFields
    order: Literal["activity", "created", "none"] = Field(
        default="activity", description="how the list is ordered: by last reply or by creation, newest first, or in no such way"
    )


class ThreadPageSpec(Page):
    """The page of an opening post."""

    _places: ClassVar[frozenset[str]] = frozenset({"forum", "thread", "url"})

    fields: PostFields

    @field_validator("fields")
    @classmethod
    def _has_body(cls, fields: PostFields) -> PostFields:
        if fields.body is None:
            raise ValueError("body is missing: write the selector of the post's text")
        return fields


class CommentsPageSpec(RowsPage):
    """A page of a thread's comments; where post and comments are on one page, the thread's page."""

    _places: ClassVar[frozenset[str]] = ListPageSpec._places | {"thread", "url"}
    _tables: ClassVar[frozenset[str]] = frozenset({"fields", "post"})

    fields: CommentFields
    post: PostFields | None = Field(default=None, description="fields of the opening post, looked for in the whole page")
    first_is_post: bool = Field(default=False, description="the first row of the first page is the opening post")
    nested: bool = Field(default=False, description="HTML: a row within a row is an answer to it")
    children: Select | None = Field(default=None, description="JSON: the answers to a row, rows themselves")

    @model_validator(mode="after")
    def _nests_in_its_format(self) -> Self:
        if self.nested and self.format != "html":
            raise ValueError("nested is for HTML pages; where the answers of a JSON row are, say with `children`")
        if self.children is not None and self.format != "json":
            raise ValueError("children is for JSON pages; of HTML say nested = true, where a row within a row is an answer to it")
        return self


class RecentPageSpec(RowsPage):
    """The newest messages of the whole site, the newest first: a feed, an interface, or a list of the threads that were active
    last. It says which threads have changed, for one request; the lists are then looked at more seldom.
    """

    _places: ClassVar[frozenset[str]] = IndexPageSpec._places

    fields: RecentFields

    @model_validator(mode="after")
    def _tells_messages_apart(self) -> Self:
        told = self.fields
        if told.id is None and told.token is None and told.reply_count is None and told.created_at is None:
            raise ValueError("fields has neither id nor token nor reply_count nor created_at: what is new cannot be told")
        if told.body is not None and told.id is None:
            raise ValueError("fields has a body and no id: give the message's own id, as the thread's page has it")
        return self


class Pages(BaseModel):
    """The pages of a site."""

    model_config = _STRICT

    @model_validator(mode="before")
    @classmethod
    def _take_away(cls, pages: Any) -> Any:
        """`recent = false` takes away a page that the profile has and that a site can do without."""
        if not isinstance(pages, Mapping):
            return pages
        return {name: page for name, page in pages.items() if page is not False or cls.model_fields[name].is_required()}

    index: IndexPageSpec | None = Field(default=None, description="the forums of the site; needed for `discover`")
    list: ListPageSpec = Field(description="the threads of a forum")
    thread: ThreadPageSpec | None = Field(
        default=None, description="the opening post; none where post and comments are on one page"
    )
    comments: CommentsPageSpec = Field(description="the comments of a thread")
    recent: RecentPageSpec | None = Field(default=None, description="the newest messages of the whole site")
