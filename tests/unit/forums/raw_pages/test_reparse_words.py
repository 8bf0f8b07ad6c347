"""What `trawl sites reparse` says of texts that are lost."""

from __future__ import annotations

from collections import Counter

from forums.raw_pages.reparse import ReparseReport


def test_a_kind_of_page_without_any_body_is_named() -> None:
    report = ReparseReport(site="books")
    report.rows |= {"thread": 2, "comments": 9, "list": 5}
    report.fields |= {
        "thread": Counter({"body": 1}),
        "comments": Counter({"id": 9, "body": 0}),
        "list": Counter({"id": 5}),
    }
    assert [line.partition(":")[0] for line in report.lost()] == ["body is empty in all 9 rows of comments"]
