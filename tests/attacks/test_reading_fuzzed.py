"""No page of n bytes costs more than so many seconds and yields more than so many characters for each: pages by structure, such
as people do not write. `make fuzz MINUTES=5` looks for others than those that are always the same.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, TextResponse

from forum_reader.definition.load import profile_names
from forum_reader.reading import parse_body
from forum_reader.reading.page_records import Asked
from forums.sites import Site, SiteError, UnreadablePage, isolated
from forums.sites.load import load_file
from tests.support.cpu_time import least_cpu_s

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "8" if os.environ.get("SHORT_TESTS") else "30"))
MINUTES = float(os.environ.get("FUZZ_MINUTES", "0"))
LEAST_S, S_PER_MB = 3.0, 6.0  # what the reactor may be kept waiting, and ten times what ordinary pages take

# What the profiles look for, so that rows, bodies and authors are found in one another.
OPENINGS = (
    '<div class="post" id="p{0}">', '<div class="content">', '<article class="message message--post" data-content="post-{0}">',
    '<div class="bbWrapper">', '<li class="postcontainer" id="post_{0}">', '<blockquote class="postcontent">', "<blockquote>",
    "<cite>", "<table><tr><td>", '<div id="post_{0}"><td class="t_f" id="postmessage_{0}">', "<p>", "<b>", "<pre>",
    '<li class="row"><a class="topictitle" href="?t={0}">', '<a href="?start={0}" rel="next">', '<time datetime="2026-11-0{0}">',
    '<p class="author">» 5 mar um {0} uhr ', "<script>", "<!--", "<svg>", "<select>", "<template>", "<textarea>", '<a title="',
    "<a b c d='", "</div>", "</p></b></i>", "-->", "text &amp; more ", "\u3000汉字 ", "&#0;&#55296;&NotEqualTilde;",
)  # fmt: skip
BODIES = (
    '<body class="section-viewtopic">',
    '<body class="section-viewforum"><ul class="topiclist topics">',
    '<html data-template="thread_view">',
)
PARTS = st.tuples(st.lists(st.sampled_from(OPENINGS), min_size=1, max_size=5), st.integers(1, 1500))
HTML = st.tuples(st.sampled_from(BODIES), st.lists(PARTS, min_size=1, max_size=6))
TEXTS = ("x" * 3000, "<p>" * 500, "<a " + "b " * 900 + ">", "2026-11-22T10:00:00Z", "5 mar um 3 uhr", "/t/1", "\ud83d", "\u0000")
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from(TEXTS)
NAMES = (
    "topic_list topics post_stream posts id title cooked username users posters user_id comments replies comment post creator "
    "path data attributes included content published next_page"
)
KEYS = st.sampled_from(NAMES.split())
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=60)
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> list[Site]:
    folder: Path = tmp_path_factory.mktemp("sites")
    made = []
    for name in profile_names():
        file = folder / f"{name}.toml"
        file.write_text(f'profile = "{name}"\nbase_url = "http://forum.example"\nforums = ["2"]\n')
        with suppress(SiteError):  # a profile to be completed, as `generic`
            made.append(load_file(file))
    return made


def fuzz(examples: int) -> Any:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=not MINUTES,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def judge(sites: list[Site], response: TextResponse, syntax: str) -> None:
    """Read it as each kind of page of each profile of its format, as a reactor would."""
    for site in sites:
        for kind in ("list", "comments"):
            if site.page(kind).format == syntax:
                judge_kind(site, response, kind)


def judge_kind(site: Site, response: TextResponse, kind: str) -> None:
    size = len(response.body)
    most_s = LEAST_S + S_PER_MB * size / 1e6
    pages = []

    def read() -> None:
        with suppress(UnreadablePage):
            pages.append(isolated.here(site, response.copy(), Asked(kind=kind, forum="2", thread="1", number=2)))

    assert least_cpu_s(read, most_s) < most_s, (site.name, kind, size)
    for page in pages[:1]:
        rows = getattr(page, "comments", None) or getattr(page, "threads", ())
        length = sum(len(value) for row in rows for name in row.__struct_fields__ if isinstance(value := getattr(row, name), str))
        assert length <= 2 * (parse_body.MOST_TIMES * size + parse_body.LEAST_OUTPUT), (site.name, kind, size)


def for_minutes(run: Any) -> None:
    """Once; with FUZZ_MINUTES again and again, with other examples each time."""
    until = time.monotonic() + 60 * MINUTES / 2
    run()
    while time.monotonic() < until:
        run()


@pytest.mark.timeout(300 + 60 * MINUTES)
def test_no_html_costs_more_than_its_size(sites: list[Site]) -> None:
    @fuzz(EXAMPLES)
    @given(HTML)
    def run(page: tuple[str, list[tuple[list[str], int]]]) -> None:
        body, parts = page
        made = ("".join(pieces).replace("{0}", str(n)) for pieces, many in parts for n in range(many))
        response = HtmlResponse("http://forum.example/x", body=(body + "".join(made))[:MOST_BYTES], encoding="utf-8")
        judge(sites, response, "html")

    for_minutes(run)


@pytest.mark.timeout(300 + 60 * MINUTES)
def test_no_json_costs_more_than_its_size(sites: list[Site]) -> None:
    @fuzz(EXAMPLES)
    @given(JSON, st.integers(1, 300))
    def run(value: Any, many: int) -> None:
        rows = [value] * min(many, 1 + MOST_BYTES // (3 * len(json.dumps(value))))
        body = json.dumps({"topic_list": {"topics": rows}, "post_stream": {"posts": rows}, "comments": rows})
        headers = {"Content-Type": "application/json"}
        response = TextResponse("http://forum.example/x", body=body.encode(), encoding="utf-8", headers=headers)
        judge(sites, response, "json")

    for_minutes(run)
