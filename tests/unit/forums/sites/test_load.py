"""Site files: what is right is read, what is wrong is one line with file, key, value and fix."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forum_reader.definition import load as definition
from forum_reader.definition.load import OWN
from forums.sites import SiteError, load, load_all, load_site, site_in_use, site_names, site_to_ask
from forums.sites.http.politeness import headers_of
from forums.sites.load import checked as site_of
from forums.sites.load import load_file


def leaves(values: Any, loc: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The place of every value other than a table."""
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from leaves(value, (*loc, key))
    else:
        yield loc


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    return tmp_path


GOOD = 'profile = "generic"\nbase_url = "http://forum.example/api/"\nforums = ["a", "b"]\n'


def test_a_site_builds_its_urls_from_the_templates(folder: Path) -> None:
    text = (
        '[pages.comments]\nurl = "/t/{thread}.json?page={page}"\nfirst_url = "/t/{thread}.json"\n'
        '[pages.list]\nurl = "/f/{forum:path}"\n'
    )
    (folder / "books.toml").write_text(GOOD + text)
    site = load_site("books")
    assert site.list_url("a b/../2") == "http://forum.example/api/f/a%20b/../2"
    assert site.url("comments", thread="1/../2?x") == "http://forum.example/api/t/1%2F..%2F2%3Fx.json"
    assert site.url("comments", thread="p1", number=3) == "http://forum.example/api/t/p1.json?page=3"
    assert site_names() == ["books"]


def test_a_profile_is_overridden_key_by_key(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "old.toml").write_text(
        '[recognise]\nhints = ["class x"]\n[pages.list]\nurl = "/l/{forum}"\nrows = "li"\n'
        'fields = { id = "a::attr(href)", title = "a", author = "b" }\n'
        '[pages.comments]\nurl = "/t/{thread}"\nrows = "div"\nfields = { id = "./@id", body = "p" }\n'
        "[limits]\npages_per_scan = 3\n"
    )
    (profiles / "new.toml").write_text(
        'profile = "old"\n[pages.list.fields]\nid = { regex = "/([0-9]+)" }\n[limits]\ndeep_pages = 7\n'
    )
    monkeypatch.setattr(definition, "PROFILES", profiles)
    (folder / "books.toml").write_text(
        'profile = "new"\nbase_url = "http://x"\nforums = [1]\nlimits.deep_pages = 9\npages.list.fields.author = false\n'
    )
    site = load_site("books")
    assert site.forums == ("1",)
    assert (site.limits.pages_per_scan, site.limits.deep_pages) == (3, 9)
    fields = site.pages.list.fields
    assert (fields.id.select, fields.id.regex, fields.author) == (("a::attr(href)",), "/([0-9]+)", None)
    assert site.recognise.hints == (), "a profile's marks are its own"
    (profiles / "old.toml").write_text('profile = "new"\n')
    definition._table_in.cache_clear()  # a process reads a profile once
    with pytest.raises(SiteError, match="profiles go round in a circle"):
        load_site("books")


def test_a_file_is_read_again_when_it_or_its_environment_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "books.toml").write_text(
        '# ${IN_A_COMMENT}\nprofile = "generic"\nbase_url = "${BOOKS_URL:-http://127.0.0.1:1}"\nforums = ["a"]\n'
    )
    first = load_site("books")
    assert str(first.base_url) == "http://127.0.0.1:1/"
    assert load_site("books") is first
    monkeypatch.setenv("BOOKS_URL", "http://127.0.0.1:2")
    assert str(load_site("books").base_url) == "http://127.0.0.1:2/"
    (folder / "books.toml").write_text(GOOD)
    assert str(load_site("books").base_url) == "http://forum.example/api/"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base_url = ", "cannot be read as TOML"),
        (GOOD + "limits.pages_per_scan = 0", "limits.pages_per_scan = 0: must be greater than or equal to 1"),
        (GOOD + 'forum = "a"', "forum = 'a': there is no such key: did you mean forums"),
        (GOOD + 'pages.list.fields.autor = "a"', r"pages.list.fields.autor = 'a': there is no such key: did you mean author\?"),
        ('base_url = "ftp://x/"\nforums = ["a"]', "base_url = 'ftp://x/': URL scheme should be 'http' or 'https'"),
        ('base_url = "http://x/"\nforums = []', r"forums = \[\]: there is nothing to watch"),
        ('base_url = "http://x/"', "books.toml: pages is missing: write it, or name the software"),
        ('base_url = "http://u:p@x/"', "base_url = 'http://u:p@x/': must not hold a password"),
        (GOOD + 'also_allowed = ["file:///etc"]', "also_allowed.0 = 'file:///etc': URL scheme should be 'http' or 'https'"),
        (GOOD + '[pages.list]\nurl = "/{thread}"', r"pages.list.url = '/\{thread\}': .*may hold"),
        (GOOD + '[pages.list]\nurl = "f/{forum}"', "must start with /"),
        (GOOD + '[pages.list]\nurl = "/{forum}?s={offset}"', r"url has \{offset\}: give `per_page`"),
        (GOOD + "[pages.list]\nbody.form = { s = '{offset}' }", r"body has \{offset\}: give `per_page`"),
        (GOOD + "[pages.list]\nbody.form = { s = '{thread}' }", r"pages.list.body.* \{thread\} is not known here: may hold"),
        (GOOD + "[pages.list]\nbody = {}", "has to be one of both: form = "),
        (GOOD + "[pages.list]\nmethod = 'GET'\nbody.form = {}", "sends no body"),
        (GOOD + "[pages.list]\nmethod = 'PUT'", "method = 'PUT': must be 'GET' or 'POST'"),
        (GOOD + '[pages.list]\nurl = "/{forum:int}"', "leave :int out"),
        (GOOD + "[pages.list]\nformat = 'xml'\nnext = false\nhtml_at = 'a'", "html_at is for HTML within JSON"),
        (GOOD + "[pages.comments]\nformat = 'html'\njson_at = 'script'", "json_at is for JSON within HTML"),
        (GOOD + "[pages.list]\nheaders = { 'X Y' = 'a' }", "headers"),
        (GOOD + '[pages.comments]\nurl = "/{thread.2}"', "but pages.list.fields.id has no `join`"),
        (GOOD + "pages.list.fields.id = { select = 'a', regex = '(.)', join = '-' }", "join is put between the groups"),
        (GOOD + "pages.list.fields.title = { select = 'a', prefix = 'x' }", "prefix is for ids"),
        (GOOD + "pages.comments.fields.load_more = 'a.more'", r"load_more leads to pages of \[pages.more\], and there is none"),
        (GOOD + "[pages.more]", r"\[pages.more\] is never asked for"),
        (GOOD + '[pages.list]\nrows = "li["', r"pages.list.rows = 'li\[': 'li\[' is no CSS selector"),
        (GOOD + '[pages.list]\nrows = "//li["', r"pages.list.rows = '//li\[': .* is no XPath"),
        (GOOD + '[pages.list]\nformat = "json"\nrows = "a["', r"pages.list.rows = 'a\[': .* is not a JMESPath"),
        (GOOD + '[pages.list]\nformat = "rss"', "pages.list.format = 'rss': must be 'json', 'html' or 'xml'"),
        (GOOD + "pages.list.fields.title = { regex = '(' }", "pages.list.fields.title.regex = .* is not a regular expression"),
        (GOOD + f"pages.list.fields.title = {{ regex = '{'(' * 1_000}{')' * 1_000}' }}", "its brackets are nested too deep"),
        (
            GOOD + f"pages.list.fields.title = \"//a[re:test(., '{'(' * 1_000}{')' * 1_000}')]\"",
            "its brackets are nested too deep",
        ),
        (GOOD + "pages.list.fields.title = { as = 'txt' }", "pages.list.fields.title.as = 'txt': must be 'text'"),
        (GOOD + "pages.list.fields.views = { as = 'int' }", "there is no such key"),
        (GOOD + "pages.comments.fields.position = { as = 'int' }", "has no `select`: write the selector, or a `default`"),
        (
            GOOD + "pages.comments.fields.created_at = { select = 'b', as = 'text' }",
            "created_at is a date; take the part that counts",
        ),
        (GOOD + "pages.list.fields.last_activity = { select = 'b', default = '2026' }", "default = '2026' cannot be stored"),
        (GOOD + "pages.list.fields.reply_count = { select = 'b', as = 'text' }", "reply_count is a number"),
        (GOOD + "pages.list.next = { select = 'b', as = 'int' }", "next is an address"),
        (GOOD + "pages.list.fields.title = 5", 'title = 5: must be a selector, as in title = "a.title", a list of them'),
        (GOOD + "pages.list.rows = true", "rows = True: must be a selector"),
        (GOOD + "limits = 3", r"limits = 3: must be a table, as \[limits\]"),
        (GOOD + "headers.X-Number = 3", r"headers.X-Number = .….: must be a valid string$"),
        (GOOD + "[schedule]\nscan_budget_per_hour = 'many'", "must be a valid number, unable to parse string as a number"),
        (GOOD + "pages.comments.children = 'a'", "children is for JSON pages"),
        (GOOD + 'language = "klingon"', "language = 'klingon': is not a language"),
        (GOOD + 'time_zone = "Berlin"', "time_zone = 'Berlin': is not a time zone"),
        (GOOD + "[schedule]\nmin_interval_s = 60\nmax_interval_s = 30", "must not be below min_interval_s = 60"),
        (GOOD + 'cookies.session = "abc123"', r'cookies.session = .….: a secret must not .* session = "\$\{BOOKS_SESSION\}"'),
        (GOOD + 'headers.Authorization = "Bearer abc123"', r"headers.Authorization = .….: a secret must not"),
        (GOOD.replace("generic", "genric"), "profile = 'genric': there is none; profiles are .*generic"),
        (GOOD.replace("generic", "../../x"), "there is none"),
        (GOOD.replace("http:", "${NOT_SET_ANYWHERE}"), "NOT_SET_ANYWHERE is not set: set it in the environment, or write"),
        *(
            (GOOD.replace("http:", f"${{{name}X:-http:}}"), "is a setting of Trawl, .* no site gets it: name another")
            for name in OWN
        ),
        (GOOD + 'name = "other"', "must be 'books', as the file is named"),
        (GOOD.replace("[", "").replace("]", ""), "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_one_line_that_names_file_key_and_value(folder: Path, text: str, said: str) -> None:
    (folder / "books.toml").write_text(text)
    with pytest.raises(SiteError, match=said) as caught:
        load_site("books")
    assert "books.toml: " in str(caught.value)
    assert "abc123" not in str(caught.value)


def test_all_that_is_wrong_is_said_at_once_and_stops_no_other_site(folder: Path) -> None:
    (folder / "books.toml").write_text(
        GOOD
        + 'colour = "red"\ncookies.a = "b"\n[limits]\ndeep_pages = "many"\n'
        + '[pages.list]\nrows = "li["\nfields.id = { rgex = "x" }\n'
    )
    (folder / "good.toml").write_text(GOOD)
    sites, wrong = load_all()
    assert [site.name for site in sites] == ["good"]
    assert list(wrong) == ["books"]
    lines = str(wrong["books"]).splitlines()
    assert [line.split(": ")[1].split(" = ")[0] for line in lines] == [
        "pages.list.rows",
        "pages.list.fields.id.rgex",
        "limits.deep_pages",
        "colour",
        "cookies.a",
    ]
    assert "did you mean regex?" in str(wrong["books"])


def test_a_fault_in_a_profile_names_the_profile(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "generic.toml").write_text('[pages.list]\nurl = "/"\nrows = "li["\n')
    monkeypatch.setattr(definition, "PROFILES", profiles)
    (folder / "books.toml").write_text(GOOD)
    with pytest.raises(SiteError, match=r"profiles/generic.toml: pages.list.rows = 'li\['"):
        load_site("books")


def test_secrets_come_from_the_environment_and_are_never_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOOKS_TOKEN", "abc123")
    text = (
        '[headers]\nAuthorization = "Bearer ${BOOKS_TOKEN}"\nUser-Agent = "books/1"\n'
        '[cookies]\na = "${BOOKS_TOKEN}"\nb = "${BOOKS_TOKEN}2"\n'
    )
    (folder / "books.toml").write_text(GOOD + text)
    site = load_site("books")
    assert headers_of(site) == {"Authorization": "Bearer abc123", "User-Agent": "books/1", "Cookie": "a=abc123; b=abc1232"}
    assert "abc123" not in repr(site)
    assert "abc123" not in site.model_dump_json()


@pytest.mark.parametrize("name", ["nope", "../books", ""])
def test_an_unknown_site_is_answered_with_those_that_exist(folder: Path, name: str) -> None:
    (folder / "books.toml").write_text(GOOD)
    with pytest.raises(SiteError, match=r"unknown site .*are books; add"):
        load_site(name)


def test_an_unknown_site_in_an_empty_folder_is_answered_with_what_to_do(folder: Path) -> None:
    with pytest.raises(SiteError, match=r"unknown site 'nope': there is no site file in .*; trawl sites new URL writes one"):
        load_site("nope")


def test_a_slip_in_a_file_that_is_crawled_costs_no_request(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "CHECK_S", 0.0)
    file = folder / "books.toml"
    file.write_text(GOOD)
    before = site_in_use("books")
    file.write_text(GOOD + "nonsense = 1\n")
    with pytest.raises(SiteError, match="nonsense"):
        load_site("books")
    assert site_to_ask("books") == before == site_in_use("books")
    assert [line.getMessage().count("nonsense") for line in caplog.records] == [1], "said once"
    file.write_text(GOOD + "limits.pages_per_scan = 7\n")
    assert site_in_use("books").limits.pages_per_scan == 7
    file.unlink()
    with pytest.raises(SiteError, match="unknown site"):
        site_to_ask("books")
    assert site_in_use("books").limits.pages_per_scan == 7, "for what was asked for"
    with pytest.raises(SiteError, match="unknown site"):
        site_in_use("nope")


def test_a_site_whose_file_is_wrong_has_its_name_still(folder: Path) -> None:
    (folder / "books.toml").write_text(GOOD)
    (folder / "wrong.toml").write_text("nonsense")
    assert site_names() == ["books", "wrong"]


def test_false_takes_away_also_what_no_profile_has(folder: Path) -> None:
    (folder / "books.toml").write_text(GOOD + "pages.comments.fields.parent_id = false\npages.list.has_more = false\n")
    assert load_site("books").pages.comments.fields.parent_id is None


OLD_AND_NEW = [
    ("[politeness]\nmax_rate = 3\nmax_burst = 4\nmax_concurrency = 5", {"rate": 3, "burst": 4, "concurrency": 5}),
    ("[politeness]\nmax_per_hour = 6\nmax_per_day = 7", {"per_hour": 6, "per_day": 7}),
    ("[politeness]\nquiet_hours = '01:00-02:00'", {"quiet": "01:00-02:00"}),
    ("[politeness]\ndelay_s = 0.25\nconcurrency = 2", {"rate": 4, "concurrency": 2}),
    ("[politeness]\ndelay_s = 0", {"rate": 0}),
    ("[politeness]\ndelay_s = 0.25\nmax_rate = 2", {"rate": 2}),
    ("[politeness]\ndelay_s = 0.25\nmax_rate = 9", {"rate": 4}),
    ("[politeness]\nrate = 1\ndelay_s = inf", {"rate": 1e-5}),
    ("[schedule]\nrequests_per_hour = 600", {"per_hour": 600}),
    ("[schedule]\nrequests_per_hour = 0.2\n[politeness]\nmax_per_hour = 9", {"per_hour": 1}),
]


@pytest.mark.parametrize(("old", "meant"), OLD_AND_NEW)
def test_old_words_of_politeness_are_limits_of_the_site_and_warn_once(
    folder: Path, old: str, meant: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definition, "_warned", set())
    (folder / "books.toml").write_text(GOOD + old)
    asked = load_site("books").politeness.model_dump(exclude_unset=True)
    assert asked == meant
    (folder / "books.toml").write_text(GOOD + old + "\n")
    load_site("books")
    lines = [line.getMessage() for line in caplog.records]
    assert len(lines) == sum(f"{key} = " in old for _, key in definition.LIMITS), "one for each key"
    assert all(
        f"{folder}/books.toml: " in line and line.endswith("of all crawlers together for one release: rename it")
        for line in lines
    )


def test_a_plan_that_was_written_for_scans_keeps_its_size(folder: Path) -> None:
    (folder / "books.toml").write_text(GOOD + "[schedule]\nrequests_per_hour = 600")
    assert load_site("books").schedule.scan_budget_per_hour == 600
    (folder / "books.toml").write_text(GOOD + "[politeness]\nper_hour = 60")
    assert load_site("books").scan_budget_per_hour == 60


@pytest.mark.parametrize(
    "wrong", ["[politeness]\ndelay_s = 'x'", "[politeness]\ndelay_s = -1", "politeness = 3\nschedule.requests_per_hour = 3"]
)
def test_a_wrong_value_of_an_old_word_is_one_line(folder: Path, wrong: str) -> None:
    (folder / "books.toml").write_text(GOOD + wrong)
    with pytest.raises(SiteError, match=r"books\.toml: (politeness|schedule)"):
        load_site("books")


def test_old_keys_of_pages_are_read_and_warn(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = (
        "[pages.list]\nmore = 'a.next'\nwall = 'form.login'\n"
        "[pages.comments.fields]\nbody = { select = 'p', without = '.sig' }\n[pages.comments.headers]\nmore = 'x'\n"
    )
    (folder / "books.toml").write_text(GOOD + old)
    pages = load_site("books").pages
    (folder / "books.toml").write_text(
        GOOD + old.replace("more = 'a", "has_more = 'a").replace("wall", "block_page").replace("without", "remove")
    )
    assert pages == load_site("books").pages
    lines = sorted(line.getMessage().partition(": ")[2] for line in caplog.records)
    assert lines == [
        f"pages.{old} is read as {new} for one release: rename it"
        for old, new in (("comments.fields.body.without", "remove"), ("list.more", "has_more"), ("list.wall", "block_page"))
    ]


def test_no_message_is_pydantics(folder: Path) -> None:
    """Its words are for programmers: "Input should be a valid dictionary or instance of FieldSpec"."""
    wrong: list[Any] = [5, 1.5, True, "x y", [], [1], {}, {"a": 1}, "2026-11-22"]
    keys = [*leaves(definition.read(folder / "books.toml", tomllib.loads(GOOD)).values)]
    keys += [loc[:depth] for loc in keys for depth in range(1, len(loc))]
    keys += [("schedule", "scan_budget_per_hour"), ("limits", "deep_pages"), ("politeness", "obey_robots")]
    said: list[str] = []
    for loc in dict.fromkeys(keys):
        for value in wrong:
            table: dict[str, Any] = tomllib.loads(GOOD)
            inner = table
            for key in loc[:-1]:
                inner = inner.setdefault(key, {}) if isinstance(inner.get(key, {}), dict) else inner
            inner[loc[-1]] = value
            try:
                site_of(definition.read(folder / "books.toml", table))
            except SiteError as error:
                said += str(error).splitlines()
    assert len(said) > 100
    assert not [line for line in said if "Input should" in line or "instance of" in line]


def test_a_list_of_many_wrong_values_is_refused_in_few_short_lines(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    wrong = ", ".join(["62"] * 5_000)
    file.write_text(f'profile = "generic"\nbase_url = "http://h.example"\nforums = ["1"]\n[pages.comments]\nrows = [{wrong}]\n')
    with pytest.raises(SiteError) as refused:
        load_file(file)
    lines = str(refused.value).splitlines()
    assert len(lines) <= 41
    assert max(map(len, lines)) < 1_000 + 2 * len(str(file))
    assert lines[-1] == f"{file}: 4,960 more faults"
