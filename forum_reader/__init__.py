"""Reads the pages of forums: any page to its posts, and a forum's address to a site file.

    from forum_reader import draft_site, read_page

    page = read_page(html, url)
    page.kind, page.title, [(post.author, post.published, post.text) for post in page.posts]

    text = draft_site("https://forum.example.org/")

Both are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .draft.draft_site import draft_site
    from .page.response import FetchedPage
    from .readers.page_reader import read_page

__version__ = "0.1.0"
__all__ = ["FetchedPage", "draft_site", "read_page"]

_MODULES = {"read_page": "readers.page_reader", "draft_site": "draft.draft_site", "FetchedPage": "page.response"}


def __getattr__(name: str) -> Any:
    """Return a name of the interface."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
