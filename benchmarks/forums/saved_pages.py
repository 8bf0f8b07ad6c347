"""Saved pages of real forums, which are not in the repository: each with its address."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from scrapy.http import HtmlResponse

from benchmarks.support.report import BenchmarkFailed
from forum_reader.errors import SiteError
from forum_reader.reading.read_page import read_comments
from forum_reader.recognise.recognise import recognise
from forums.sites import Site

Page = tuple[str, str]
ByHand = Callable[[Any], Any]


def saved(folder: Path) -> list[Page]:
    """Read the pages in a folder. Raises BenchmarkFailed if there are none."""
    pages = [(file.read_text("utf-8", "replace"), f"https://forum.example/{file.name}") for file in sorted(folder.glob("*.html"))]
    for file in sorted(folder.glob("*.json")):
        page = json.loads(file.read_text("utf-8"))
        if isinstance(page, dict) and "html" in page:
            pages.append((page["html"], page.get("url") or f"https://forum.example/{file.name}"))
    if not pages:
        raise BenchmarkFailed(f'{folder}: has no .html files, nor .json files with "html" and "url"')
    return pages


def threads(
    folder: Path, readers: Mapping[str, ByHand], site_of: Callable[[str], Site], headers: dict[str, str]
) -> Iterator[tuple[Site, HtmlResponse, ByHand]]:
    """Return the thread pages of software with a handwritten callback, which finds as many posts as the profile, two at least."""
    for markup, url in saved(folder):
        page = HtmlResponse(url, body=markup.encode("utf-8", "replace"), encoding="utf-8", headers=headers)
        profile = recognise(page).html_profile
        if profile not in readers:
            continue
        site = site_of(profile)
        try:
            read = read_comments(site, page, "41", 2)
            posts = len(readers[profile](page.copy()))
        except (SiteError, LookupError, ValueError):  # another style than the callback is for
            continue
        if posts == len(read.comments) > 1:
            yield site, page, readers[profile]
