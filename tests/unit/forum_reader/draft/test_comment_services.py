"""Static pages whose comments come from a service: a site file from the address of the blog, or of one of its pages."""

from __future__ import annotations

import json

import pytest
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.definition.page_requests import PageRequest
from forum_reader.draft.draft_site import draft_site
from forum_reader.errors import FetchFailed, ReaderError
from forum_reader.page.response import TextResponse as AnyResponse

BLOG = "http://blog.example"
MARKS = {
    "isso": '<script data-isso="//c.example/isso/" src="//c.example/isso/js/embed.min.js"></script>',
    "remark": '<script>var remark_config = {host: "https://c.example", site_id: "garden", components: ["embed"]};</script>'
    '<div id="remark42"></div>',
    "waline": '<div id="waline"></div><script type="module">init({ el: "#waline", serverURL: "https://c.example" });</script>',
    "artalk": '<div id="artalk"></div><script>Artalk.init({el: "#artalk", server: "https://c.example", site: "garden"})</script>',
}
OF_ISSO = {"id": 1, "text": "<p>hello</p>", "author": "ida", "created": 1795946490.9, "modified": None, "replies": []}
OF_REMARK = {"id": "a", "pid": "", "text": "<p>hello</p>", "user": {"name": "ida"}, "time": "2026-11-01T10:00:00Z"}
OF_WALINE = {"objectId": 1, "nick": "ida", "comment": "<p>hello</p>", "time": 1795946490900}
OF_ARTALK = {"id": 1, "rid": 0, "nick": "ida", "content": "hello", "date": "2026-11-01 10:00:00"}
ANSWERS = {
    "isso": {"replies": [OF_ISSO]},
    "remark": {"comments": [OF_REMARK]},
    "waline": {"errno": 0, "data": {"totalPages": 1, "data": [OF_WALINE]}},
    "artalk": {"count": 1, "comments": [OF_ARTALK]},
}
WANTED = {
    "isso": "http://c.example/isso/?uri=/p/2.html",
    "remark": "https://c.example/api/v1/find?site=garden&url=http://blog.example/p/2.html&format=plain&sort=%2Btime",
    "waline": "https://c.example/api/comment?path=/p/2.html&pageSize=100&page=1&sortBy=insertedAt_asc",
    "artalk": "https://c.example/api/v2/comments?page_key=/p/2.html&site_name=garden&flat_mode=true&limit=100&offset=0",
}


class Blog:
    """Six pages and their list; `asked`: what was fetched of the service."""

    def __init__(self, mark: str, answer: object = None) -> None:
        self._mark, self._answer = mark, answer
        self.asked: list[str] = []

    def __call__(self, page: PageRequest) -> AnyResponse:
        if not page.url.startswith(BLOG):
            self.asked.append(page.url)
            if "/latest" in page.url or "/last/" in page.url or "type=recent" in page.url:
                return TextResponse(page.url, status=404, body=b"no")
            return TextResponse(page.url, body=json.dumps(self._answer).encode(), headers={"Content-Type": "application/json"})
        path = page.url.removeprefix(BLOG)
        row = '<li><a href="/p/{0}.html">Page number {0}</a> <time>2026-10-0{0}</time></li>'
        texts = {"/": f"<h1>Garden</h1><ul>{''.join(map(row.format, range(6, 0, -1)))}</ul>"}
        for n in range(1, 7):
            shown = f"<h1>Page number {n}</h1><p>A text about plants, the {n}th.</p>"
            texts[f"/p/{n}.html"] = f'<a href="/">all</a><article>{shown}</article>{self._mark}'
        if path not in texts:
            raise FetchFailed(f"{page.url}: not there")
        return HtmlResponse(page.url, body=f"<html lang=en><body>{texts[path]}".encode(), encoding="utf-8")


@pytest.mark.parametrize("start", ["/", "/p/3.html"])
@pytest.mark.parametrize("service", MARKS)
def test_the_file_reads_the_comments_from_the_service_that_the_page_names(service: str, start: str) -> None:
    blog = Blog(MARKS[service], ANSWERS[service])
    text = draft_site(BLOG + start, fetch=blog)
    assert WANTED[service] in blog.asked
    assert "also_allowed" in text
    assert "they are found when its pages are checked again" in text, "the list shows no comments"


@pytest.mark.parametrize("mark", ["disqus_thread", "commento", "cusdis_thread"])
def test_a_service_that_is_not_read_is_named_with_what_to_do(mark: str) -> None:
    with pytest.raises(ReaderError, match=r"filled by (Disqus|Commento|Cusdis), which is not read: write a site file for"):
        draft_site(f"{BLOG}/p/3.html", fetch=Blog(f'<div id="{mark}"></div>'))
