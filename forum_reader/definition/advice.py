"""Advice on site files: values that are allowed, but seldom intended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .site import Site


def advice(site: Site) -> list[str]:
    """Return one sentence for each setting that will cost requests, or lose data unnoticed."""
    found = []
    listed, comments = site.pages.list, site.pages.comments
    if not (listed.fields.token or listed.fields.reply_count or listed.fields.last_activity):
        found.append(
            "pages.list.fields has neither token nor reply_count nor last_activity: changed threads cannot be recognised"
        )
    if listed.next is None and listed.cursor is None and not listed.is_numbered:
        found.append("pages.list has no `next`, and neither url nor body a {page}: only its first page is read")
    if site.pages.thread is None and not comments.first_is_post and comments.post is None:
        found.append("the opening post is on no page: add [pages.thread], [pages.comments.post] or first_is_post = true")
    if comments.repeats_post and not comments.first_is_post:
        found.append("pages.comments.repeats_post has no effect without first_is_post = true")
    return found
