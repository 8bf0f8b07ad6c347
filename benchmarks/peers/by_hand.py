"""Pages read as one writes it in a Scrapy callback: parsel for each field of each row, strptime with the board's known format."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from scrapy.http import HtmlResponse, TextResponse

Rows = list[dict[str, Any]]


def phpbb_list(response: HtmlResponse) -> Rows:
    """Threads of a phpBB board with `<time>`."""
    return [
        {
            "id": row.css("a.topictitle::attr(href)").re_first(r"[?&]t=(\d+)"),
            "url": response.urljoin(row.css("a.topictitle::attr(href)").get("")),
            "title": row.css("a.topictitle::text").get("").strip(),
            "author": row.css(".topic-poster [class^=username]::text").get(),
            "reply_count": int(row.css("dd.posts::text").get("0").strip().replace(",", "") or 0),
            "created_at": _iso(row.css(".topic-poster time::attr(datetime)").get()),
            "last_activity": _iso(row.css("dd.lastpost time::attr(datetime)").get()),
            "sticky": "sticky" in row.attrib.get("class", "").split(),
        }
        for row in response.css("ul.topics > li.row")
        if not row.css("dl.topic_moved, .responsive-hide a[href*=viewforum]")
    ]


def phpbb_comments(response: HtmlResponse) -> Rows:
    """Parse the posts of a phpBB board."""
    return [
        {
            "id": row.attrib["id"][1:],
            **_body(row.css("div.content")),
            "author": row.css(".postprofile [class^=username]::text").get(),
            "created_at": _strptime(row.css("p.author::text").getall()[-1].replace("»", ""), "%a %b %d, %Y %I:%M %p"),
            "edited_at": row.css("div.notice::text").re_first(r" on (.+?), edited"),
            "deleted": "deleted" in row.attrib.get("class", "").split(),
        }
        for row in response.css("div.post[id^=p]")
    ]


def vbulletin4_comments(response: HtmlResponse) -> Rows:
    """Parse the posts of a vBulletin 4 board."""
    return [
        {
            "id": row.attrib["id"][5:],
            **_body(row.css("blockquote.postcontent")),
            "author": "".join(row.css(".userinfo .username ::text").getall()).strip(),
            "created_at": _strptime("".join(row.css(".posthead .date ::text").getall()), "%m-%d-%Y, %I:%M %p"),
            "edited_at": row.css(".lastedited::text").re_first(r";\s*(.+?)\."),
            "deleted": "postbitdeleted" in row.attrib.get("class", ""),
            "position": row.css("a.postcounter::text").re_first(r"\d+"),
        }
        for row in response.css("#posts > li[id^=post_]")
    ]


def xenforo_comments(response: HtmlResponse) -> Rows:
    """Parse the posts of a XenForo board."""
    return [
        {
            "id": row.attrib["data-content"][5:],
            **_body(row.css(".message-body .bbWrapper")),
            "author": row.attrib.get("data-author"),
            "created_at": _iso(row.css(".message-attribution-main time::attr(datetime)").get()),
            "edited_at": _iso(row.css(".message-lastEdit time::attr(datetime)").get()),
            "deleted": "message--deleted" in row.attrib.get("class", ""),
            "position": row.css(".message-attribution-opposite li:last-child a::text").re_first(r"\d+"),
        }
        for row in response.css(".message--post[data-content^=post-]")
    ]


def flaskbb_comments(response: HtmlResponse) -> Rows:
    """Parse the posts of a FlaskBB board."""
    return [
        {
            "id": row.attrib["id"],
            **_body(row.css("div.post-content")),
            "author": "".join(row.css("div.author-name ::text").getall()).strip(),
            "created_at": _strptime(row.css("div.post-meta a::text").get(""), "%d %B %Y - %H:%M"),
            "edited_at": row.css("div.post-meta small::text").re_first(r"Last modified: (.+?) by"),
            "deleted": bool(row.css("div.alert .fa-user-secret")),
            "position": row.css("div.post-meta strong::text").re_first(r"\d+"),
        }
        for row in response.css("div.post-row")
    ]


def discourse_list(response: TextResponse) -> Rows:
    """Threads of Discourse's API."""
    answer = json.loads(response.body)
    names = {user["id"]: user["username"] for user in answer["users"]}
    return [
        {
            "id": str(row["id"]),
            "title": row["title"],
            "author": names.get(row["posters"][0]["user_id"]),
            "reply_count": row["posts_count"] - 1,
            "created_at": _iso(row["created_at"]),
            "last_activity": _iso(row["bumped_at"]),
            "sticky": row["pinned"] or row["pinned_globally"],
            "token": f"{row['posts_count']}@{row['highest_post_number']}@{row['last_posted_at']}@{row['title']}",
        }
        for row in answer["topic_list"]["topics"]
    ]


def lemmy_comments(response: TextResponse) -> Rows:
    """Comments of Lemmy's API."""
    return [
        {
            "id": str(row["comment"]["id"]),
            "parent_id": row["comment"]["path"].split(".")[-2],
            "body": row["comment"]["content"],
            "author": row["creator"]["name"],
            "created_at": _iso(row["comment"]["published_at"]),
            "edited_at": _iso(row["comment"].get("updated_at")),
            "deleted": row["comment"]["deleted"] or row["comment"]["removed"],
        }
        for row in json.loads(response.body)["items"]
    ]


READERS: dict[tuple[str, str], Callable[[Any], Rows]] = {
    ("phpbb", "list"): phpbb_list,
    ("phpbb", "comments-2"): phpbb_comments,
    ("vbulletin4", "comments-2"): vbulletin4_comments,
    ("xenforo", "comments-2"): xenforo_comments,
    ("flaskbb", "comments-2"): flaskbb_comments,
    ("discourse", "list-1"): discourse_list,
    ("lemmy-v4", "comments-1"): lemmy_comments,
}
"""By profile, and by the page of `tests/fixtures/forums/` that they read."""


def _body(content: Any) -> dict[str, Any]:
    return {"body": " ".join(text.strip() for text in content.css("::text").getall()).strip(), "body_html": content.get()}


def _iso(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _strptime(text: str, form: str) -> datetime:
    return datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
