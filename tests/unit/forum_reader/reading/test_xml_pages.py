"""`format = "xml"`: feeds and sitemaps as pages of a site file."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest
from scrapy.http import Response, TextResponse, XmlResponse

from forum_reader.definition.site import Site
from forum_reader.reading.read_page import read_comments, read_index, read_list
from forums.sites import SiteError
from forums.sites.load import load_file

_FILE = """
base_url = "https://forum.example"
forums = ["7"]
{index}
[pages.list]
url = "/feed?f={{forum}}"
format = "xml"
rows = "{rows}"
next = "link[rel=next]::attr(href)"
[pages.list.fields]
{fields}
[pages.comments]
url = "/t/{{thread}}.xml"
format = "xml"
rows = "item"
[pages.comments.fields]
id = {{ select = "guid", regex = 'p(\\d+)' }}
body = ["encoded", "description"]
author = "creator"
created_at = "pubDate"
"""
_ATOM = """<?xml version="1.0" encoding="UTF-8"?>
<feed xml:lang="en" xmlns="http://www.w3.org/2005/Atom" xmlns:thr="http://purl.org/syndication/thread/1.0"><title>Garden</title>
<link rel="self" href="https://forum.example/feed?f=7"/><link rel="next" href="/feed?f=7&amp;page=2"/>
<entry><id>tag:forum.example,2023:t12</id><title type="html">Pumps &amp;amp; hoses &lt;b&gt;again&lt;/b&gt;</title>
<author><name>ida</name></author><link rel="alternate" href="/t/12"/><published>2023-03-05T09:35:00Z</published>
<updated>2023-03-08T22:07:00+01:00</updated><thr:total>3</thr:total></entry>
<entry><id>tag:forum.example,2023:t9</id><title>2 &lt; 3</title><author><name>Ole K</name></author>
<link rel="alternate" href="/t/9"/><updated>2023-03-07T10:00:00Z</updated></entry></feed>"""
_FIELDS = """
id = { select = "id", regex = 't(\\d+)$' }
url = "link[rel=alternate]"
title = "title"
author = "author name"
created_at = "published"
last_activity = "updated"
reply_count = "total"
"""
_RSS = """<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>Pumps</title>
<item><title>Re: Pumps</title><guid isPermaLink="false">p41</guid><dc:creator><![CDATA[ida]]></dc:creator>
<pubDate>Sun, 05 Mar 2023 09:35:00 +0000</pubDate><description>The pump &lt;b&gt;stopped&lt;/b&gt;.</description></item>
<item><guid>p42</guid><dc:creator>風の子</dc:creator><pubDate>Mon, 06 Mar 2023 10:00:00 GMT</pubDate>
<description>Mine</description><content:encoded><![CDATA[<p>Mine, too.</p><p>It &amp; the seal.</p>]]></content:encoded></item>
</channel></rss>"""


def _site(folder: Path, rows: str = "entry", fields: str = _FIELDS, index: str = "") -> Site:
    path = folder / "x.toml"
    path.write_text(_FILE.format(rows=rows, fields=fields, index=index))
    return load_file(path)


def test_an_atom_feed_is_a_list(tmp_path: Path) -> None:
    page = read_list(_site(tmp_path), XmlResponse("https://forum.example/feed?f=7", body=_ATOM.encode()), "7")
    assert page.next == "https://forum.example/feed?f=7&page=2"
    one, two = page.threads
    assert (one.id, one.url, one.title, one.author) == ("12", "https://forum.example/t/12", "Pumps & hoses again", "ida")
    assert one.created_at == datetime(2023, 3, 5, 9, 35, tzinfo=UTC)
    assert one.last_activity == datetime(2023, 3, 8, 21, 7, tzinfo=UTC)
    assert (one.reply_count, two.id, two.title, two.created_at) == (3, "9", "2 < 3", None)
    assert one.token != two.token


def test_an_rss_feed_is_a_threads_page(tmp_path: Path) -> None:
    page = read_comments(_site(tmp_path), XmlResponse("https://forum.example/t/12.xml", body=_RSS.encode()), "12")
    assert [(one.id, one.author, one.body) for one in page.comments] == [
        ("41", "ida", "The pump stopped."),
        ("42", "風の子", "Mine, too.\n\nIt & the seal."),
    ]
    assert page.comments[0].body_html == "The pump <b>stopped</b>."
    assert page.comments[1].created_at == datetime(2023, 3, 6, 10, tzinfo=UTC)


def test_a_sitemap_is_a_list_and_its_index_an_index_also_compressed(tmp_path: Path) -> None:
    index = """[pages.index]\nurl = "/sitemap.xml"\nformat = "xml"\nrows = "sitemap"
[pages.index.fields]\nid = { select = "loc", regex = 'f(\\d+)' }\nlast_activity = "lastmod"\n"""
    fields = """id = { select = "loc", regex = 't/(\\d+)' }\nurl = "loc"\nlast_activity = "lastmod"\n"""
    site = _site(tmp_path, "url", fields, index)
    name = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    rows = "".join(f"<sitemap><loc>https://forum.example/sitemap-f{n}.xml.gz</loc></sitemap>" for n in (7, 8))
    found = read_index(
        site, XmlResponse("https://forum.example/sitemap.xml", body=f"<sitemapindex {name}>{rows}</sitemapindex>".encode())
    )
    assert [forum.id for forum in found.forums] == ["7", "8"]
    rows = "".join(f"<url><loc>https://forum.example/t/{n}</loc><lastmod>2023-03-0{n}</lastmod></url>" for n in (1, 2))
    body = gzip.compress(f"<urlset {name}>{rows}</urlset>".encode())
    page = read_list(site, Response("https://forum.example/sitemap-f7.xml.gz", body=body), "7")
    assert [(one.id, one.last_activity) for one in page.threads] == [
        ("1", datetime(2023, 3, 1, tzinfo=UTC)),
        ("2", datetime(2023, 3, 2, tzinfo=UTC)),
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<!DOCTYPE html><html><body>log in</body></html>", "no XML"),
        (b'{"a": 1}', "no XML"),
        (b"", "no XML"),
        (b"\x1f\x8b\x08garbage", "cannot be decompressed"),
        (gzip.compress(b"<a>" + b" " * 60_000_000 + b"</a>"), "cannot be decompressed"),
    ],
)
def test_what_is_no_xml_is_refused_with_its_beginning(tmp_path: Path, body: bytes, said: str) -> None:
    with pytest.raises(SiteError, match=said):
        read_list(_site(tmp_path), TextResponse("https://forum.example/feed?f=7", body=body, encoding="utf-8"), "7")


def test_entities_are_neither_expanded_nor_loaded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    inner = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))
    head = f'<!DOCTYPE feed [<!ENTITY e0 "{"x" * 100}">{inner}<!ENTITY f SYSTEM "file://{secret}">]>'
    body = f"<?xml version='1.0'?>{head}<feed><entry><id>t1</id><title>a&e8;b&f;c</title></entry></feed>"
    page = read_list(_site(tmp_path), XmlResponse("https://forum.example/feed?f=7", body=body.encode()), "7")
    assert [one.id for one in page.threads] == ["1"]
    assert len(page.threads[0].title or "") < 10


def test_a_prefix_that_nobody_declared_and_a_name_that_is_none_are_read_past(tmp_path: Path) -> None:
    def read(feed: str) -> object:
        return read_list(_site(tmp_path), XmlResponse("https://forum.example/feed?f=7", body=feed.encode()), "7").threads

    odd = _ATOM.replace("<author>", "<x:1 y:2='z'/><author>").replace(' xmlns:thr="http://purl.org/syndication/thread/1.0"', "")
    assert read(odd) == read(_ATOM)
