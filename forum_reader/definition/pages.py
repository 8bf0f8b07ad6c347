"""Models of each kind of page in a site file: its URL, its rows, its fields, and the way to the next page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from . import page_requests
from .fields import CommentFields, FieldSpec, IndexFields, ListFields, PostFields, RecentFields, Select, check_kind, give_syntax
from .page_requests import PageBody
from .selectors import Syntax

_STRICT = ConfigDict(defer_build=True, extra="forbid", frozen=True)
_ON = ("next", "pages", "total", "cursor", "has_more")  # keys of the way to the next page
_AROUND = ("html_at", *_ON, "current")  # of a page whose HTML is in JSON
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,100}$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{0,500}$")]
PageKind = Literal["index", "list", "thread", "comments", "more", "recent"]


class Page(BaseModel):
    """Keys of all kinds of pages."""

    model_config = _STRICT
    _places: ClassVar[frozenset[str]] = frozenset()

    url: str = Field(description="template of its URL: a path behind `base_url`, or a whole URL")
    method: Literal["GET", "POST"] | None = Field(
        default=None, description="request method; without it POST where there is a `body`, else GET"
    )
    body: PageBody | None = Field(default=None, description="body of the request, as `[pages.….body]`")
    headers: dict[HeaderName, HeaderValue] = Field(
        default={}, description='headers of requests for these pages only, as `X-Requested-With = "XMLHttpRequest"`'
    )
    format: Syntax = Field(
        default="html", description="`json`: selectors are JMESPath; `html` and `xml` (feeds, sitemaps): they are CSS or XPath"
    )
    html_at: Select | None = Field(
        default=None,
        description="JMESPath: HTML in a JSON page; all but `next`, `pages`, `total`, `cursor`, `has_more`, `current` is in it",
    )
    json_at: Select | None = Field(
        default=None,
        description="CSS or XPath: place of the JSON in an HTML page, as `script#__NEXT_DATA__`; everything is read from it",
    )
    container: Select | None = Field(default=None, description="an element that each such page has: a page without it is refused")
    gone: Select | None = Field(
        default=None,
        description="an element of pages of something that does not exist (any more): such a page, without rows, counts as 404",
    )
    gone_at: str | None = Field(
        default=None,
        pattern="^/",
        description="path behind `base_url` to which requests for something that does not exist are redirected: counts as 404",
    )
    block_page: Select | None = Field(
        default=None, description="an element that only a login page, a captcha or an error page has: such a page is refused"
    )

    @model_validator(mode="before")
    @classmethod
    def _give_syntax(cls, page: Any) -> Any:
        """Give each selector the syntax of its page, in which it is checked."""
        if not isinstance(page, Mapping):
            return page
        syntax = page["format"] if page.get("format") in ("json", "xml") else "html"
        outer = "json" if page.get("html_at") else syntax
        return give_syntax(cls, page, syntax, {"json_at": "html", **dict.fromkeys(_AROUND, outer)})

    @field_validator("url", "first_url", check_fields=False)
    @classmethod
    def _fillable(cls, template: str | None) -> str | None:
        return None if template is None else page_requests.check(template, cls._places)

    @field_validator("body")
    @classmethod
    def _fillable_body(cls, body: PageBody | None) -> PageBody | None:
        if body is not None:
            body.check(cls._places)
        return body

    @model_validator(mode="after")
    def _can_be_asked_for(self) -> Self:
        if self.method == "GET" and self.body is not None:
            raise ValueError('method = "GET" sends no body: leave one of both out')
        if self.html_at is not None and self.format != "html":
            raise ValueError('html_at is for HTML within JSON: write format = "html", or read the JSON and leave html_at out')
        if self.json_at is not None and self.format != "json":
            raise ValueError('json_at is for JSON within HTML: write format = "json", or read the HTML and leave json_at out')
        return self

    @property
    def is_posted(self) -> bool:
        """Return True if it is requested with POST."""
        return self.method == "POST" or (self.method is None and self.body is not None)

    @property
    def answer(self) -> Syntax:
        """Return the format of the response: JSON also where HTML is in it, HTML where JSON is in it."""
        if self.json_at is not None:
            return "html"
        return self.format if self.html_at is None else "json"

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the names in its URL and its body."""
        return frozenset(page_requests.names(self.url) | (self.body.names() if self.body is not None else set()))

    @cached_property
    def parts(self) -> frozenset[str]:
        """Return the ids of which the URL or the body has only a part."""
        return frozenset(page_requests.parts_of(self.url) | (self.body.parts() if self.body is not None else set()))

    @cached_property
    def is_numbered(self) -> bool:
        """Return True if the page n can be requested by n alone."""
        return page_requests.is_numbered(self.names)


class RowsPage(Page):
    """A page of rows, one of a chain of pages."""

    first_url: str | None = Field(default=None, description="template of the first page's URL, where it differs")
    rows: Select = Field(description="its rows; fields are searched within a row")
    skip: Select | None = Field(default=None, description="an element within rows that are left out, as advertisements")
    next: FieldSpec | None = Field(default=None, description="the link to the next page")
    pages: FieldSpec | None = Field(default=None, description="number of pages")
    total: FieldSpec | None = Field(default=None, description="number of rows on all pages")
    cursor: FieldSpec | None = Field(default=None, description="value of `{cursor}` for the next page")
    has_more: FieldSpec | None = Field(default=None, description="true if there is a next page, with a URL made from its number")
    current: FieldSpec | None = Field(
        default=None, description="the number of this page: a number other than requested is behind the end, and has no rows"
    )
    per_page: int | None = Field(default=None, ge=1, description="rows of a full page")
    ends: Literal["empty", "short"] = Field(
        default="empty",
        description="the last page, without `next`, `pages`, `total`, `has_more`: no rows, or fewer than `per_page`",
    )

    @property
    def tells_next(self) -> bool:
        """Return True if a page shows that another one follows, so that none behind the last is requested."""
        return any(getattr(self, name) is not None for name in _ON)

    @model_validator(mode="after")
    def _can_be_followed(self) -> Self:
        for name in (*_ON, "current"):
            if (field := getattr(self, name)) is not None:
                check_kind(name, field)
        if "offset" in self.names and self.per_page is None:
            where = "url" if "offset" in page_requests.names(self.url) else "body"
            raise ValueError(f"{where} has {{offset}}: give `per_page`, the rows of a full page")
        if self.ends == "short" and self.per_page is None:
            raise ValueError('ends = "short" needs `per_page`, the rows of a full page')
        if self.cursor and "cursor" not in self.names:
            raise ValueError("`cursor` is given, but url has no {cursor} to put it in, nor has a body")
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
        default="activity", description="order of the list: by last reply or by creation, newest first, or neither"
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


class CommentRows(RowsPage):
    """A page of comments: the place of answers to a comment."""

    fields: CommentFields
    shape: Literal["signed", "message"] | None = Field(
        default=None,
        description="HTML whose posts no element holds: `signed`, a wiki's talk page; `message`, a page with one message",
    )
    nested: bool = Field(default=False, description="HTML: a row within a row is an answer to it")
    children: Select | None = Field(default=None, description="JSON: the answers to a row, rows themselves")
    load_more: FieldSpec | None = Field(
        default=None,
        description="each match leads to comments that the page leaves out: an address, or `{more}` of `[pages.more]`",
    )

    @model_validator(mode="after")
    def _nests_in_its_format(self) -> Self:
        if self.nested and self.format != "html":
            raise ValueError("nested is for HTML pages; name the answers of a JSON row with `children`")
        if self.shape is not None and self.format != "html":
            raise ValueError("shape is for HTML pages: leave it out")
        if self.children is not None and self.format != "json":
            raise ValueError("children is for JSON pages; for HTML write nested = true, where a row within a row answers it")
        return self

    @property
    def loads_more(self) -> bool:
        """Return True if it may lead to pages of `[pages.more]`."""
        return self.load_more is not None or self.fields.load_more is not None


class CommentsPageSpec(CommentRows):
    """A page of a thread's comments; where post and comments are on one page, the thread's page."""

    _places: ClassVar[frozenset[str]] = ListPageSpec._places | {"thread", "url"}

    post: PostFields | None = Field(default=None, description="fields of the opening post, searched in the whole page")
    first_is_post: bool = Field(
        default=False, description="the oldest row is the opening post: the first of the first page, or as `order` defines"
    )
    order: Literal["oldest", "newest", "newest_page"] = Field(
        default="oldest",
        description="order of the posts: oldest first, newest first, or newest page first with its oldest post first",
    )
    repeats_post: bool = Field(
        default=False,
        description="with `first_is_post`: further pages begin with the opening post, too; it is not stored as a comment",
    )


class MorePageSpec(CommentRows):
    """A page of comments that the thread's pages leave out until they are requested ("load more comments"). Where its `format`
    is that of `[pages.comments]`, missing keys are taken from there, except those of the way to the next page.
    """

    _places: ClassVar[frozenset[str]] = CommentsPageSpec._places | {"comment", "more"}

    url: str = Field(
        default="{more}",
        description="template of its URL; `{more}`: match of `load_more`; `{comment}`: the comment whose answers are left out",
    )


class RecentPageSpec(RowsPage):
    """The newest messages of the whole site, the newest first: a feed, an interface, or a list of the most recently active
    threads. It shows which threads have changed, for one request; the lists are then scanned more seldom.
    """

    _places: ClassVar[frozenset[str]] = IndexPageSpec._places

    fields: RecentFields

    @model_validator(mode="after")
    def _distinguishes_messages(self) -> Self:
        fields = self.fields
        if fields.id is None and fields.token is None and fields.reply_count is None and fields.created_at is None:
            raise ValueError("fields has neither id nor token nor reply_count nor created_at: new messages cannot be recognised")
        if fields.body is not None and fields.id is None:
            raise ValueError("fields has a body and no id: give the message's own id, as the thread's page has it")
        return self


class Pages(BaseModel):
    """The pages of a site."""

    model_config = _STRICT

    @model_validator(mode="before")
    @classmethod
    def _take_away(cls, pages: Any) -> Any:
        """Drop pages with `recent = false`, which a profile has and a site can do without."""
        if not isinstance(pages, Mapping):
            return pages
        kept = {name: page for name, page in pages.items() if page is not False or cls.model_fields[name].is_required()}
        more, comments = kept.get("more"), kept.get("comments")
        if isinstance(more, Mapping) and isinstance(comments, Mapping):
            kept["more"] = _as_of(comments, more)
        return kept

    @model_validator(mode="after")
    def _loads_more(self) -> Self:
        if self.comments.loads_more and self.more is None:
            raise ValueError("load_more leads to pages of [pages.more], and there is none: add it; it may be empty")
        if self.more is not None and not self.comments.loads_more:
            raise ValueError("[pages.more] is never asked for: name the way to it with load_more of [pages.comments]")
        return self

    index: IndexPageSpec | None = Field(default=None, description="the forums of the site; needed for `discover`")
    list: ListPageSpec = Field(description="the threads of a forum")
    thread: ThreadPageSpec | None = Field(
        default=None, description="the opening post; none where post and comments are on one page"
    )
    comments: CommentsPageSpec = Field(description="the comments of a thread")
    more: MorePageSpec | None = Field(
        default=None, description="comments that the pages of a thread leave out until they are requested"
    )
    recent: RecentPageSpec | None = Field(default=None, description="the newest messages of the whole site")


_OF_ROWS = ("rows", "skip", "fields", "shape", "nested", "children", "load_more", "html_at")


def _as_of(comments: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Complete `[pages.more]`, where its rows may be those of `[pages.comments]`."""
    if more.get("format", "html") != comments.get("format", "html") and "format" in more:
        return more
    of_html = "html_at" in more  # then its next page is in the JSON
    kept = {key: comments[key] for key in _OF_ROWS if key in comments and not (of_html and key == "html_at")}
    fields = more.get("fields")
    if isinstance(fields, Mapping) and isinstance(of_comments := comments.get("fields"), Mapping):
        more = {**more, "fields": {**of_comments, **fields}}
    return {**({"format": comments["format"]} if "format" in comments else {}), **kept, **more}
