"""Results of reading a page without a site file."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec


class PageKind(Enum):
    """Purpose of a page."""

    INDEX = "index"
    """It lists forums."""
    LIST = "list"
    """It lists threads."""
    THREAD = "thread"
    """It shows posts."""
    OTHER = "other"
    """Neither."""


class Reader(Enum):
    """Method by which the posts of a page were found."""

    PROFILE = "profile"
    """By the selectors of a profile, whose software made the page."""
    SCHEMA_ORG = "schema.org"
    """By marks for search engines in the page: JSON-LD."""
    LEARNED = "learned"
    """By the structure that the posts repeat."""


class SeenPost(msgspec.Struct, frozen=True, kw_only=True):
    """A post as the page shows it. `id` is the site's own where the page has one; `number` is its place in the thread from 1;
    `published` and `edited` are UTC where the page names a time zone, else the time as written. `comments`: comments on
    this question or answer, where a page keeps them apart from answers. `section`: heading above it, on a wiki's talk page.
    """

    text: str
    id: str | None = None
    author: str | None = None
    author_url: str | None = None
    published: datetime | None = None
    edited: datetime | None = None
    parent: str | None = None
    url: str | None = None
    number: int | None = None
    section: str | None = None
    comments: tuple[SeenPost, ...] = ()


class SeenLink(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a list or an index: a thread or a forum."""

    url: str
    title: str


class Software(msgspec.Struct, frozen=True, kw_only=True):
    """Software that made the page: its profile, the marks that were found, and the certainty (0 to 1)."""

    name: str
    version: str | None = None
    profile: str
    marks: tuple[str, ...]
    score: float


class SeenPage(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a page. `reader`: the method by which the posts were found; `notes`: disagreement of readers, and doubts."""

    url: str
    kind: PageKind
    title: str | None = None
    language: str | None = None
    software: Software | None = None
    reader: Reader | None = None
    posts: tuple[SeenPost, ...] = ()
    rows: tuple[SeenLink, ...] = ()
    next: str | None = None
    pages: tuple[str, ...] = ()
    """Addresses of other pages of the same thread or list."""
    confidence: float = 0.0
    """0 to 1: how well the posts pass the checks."""
    notes: tuple[str, ...] = ()
