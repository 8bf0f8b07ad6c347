"""What is a page of a site, and what is something else in its place. The pages are of our own making, after public markers."""

from __future__ import annotations

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from forum_reader.page.soft_block import Cause, excerpt, unreadable, verdict, without_rows
from tests.support.cpu_time import least_cpu_s

URL = "http://forum.test/t/1"
THREAD = "<html><head><title>{title}</title></head><body><form><input type='password'></form>{posts}</body></html>"
POSTS = "".join(f"<article id=p{n}><p>{'All that was said here, and why it matters. ' * 8}</p></article>" for n in range(20))


def response(
    body: str | bytes, *, status: int = 200, url: str = URL, meta: dict[str, object] | None = None, **headers: str
) -> Response:
    named = {name.replace("_", "-"): value for name, value in {"content_type": "text/html", **headers}.items()}
    data = body.encode() if isinstance(body, str) else body
    return HtmlResponse(url, status=status, body=data, headers=named, request=Request(URL, meta=meta or {}), encoding="utf-8")


CHALLENGES = {
    "Cloudflare's header": response("<html>", status=403, cf_mitigated="challenge"),
    "Cloudflare's script": response(
        "<title>Just a moment...</title><script>(function(){window._cf_chl_opt={cvId:'3'}})()</script>", status=403
    ),
    "Cloudflare's refusal": response("<title>Attention Required! | Cloudflare</title><div id=cf-error-details>", status=403),
    "Anubis, with status 200": response(
        '<title>Making sure you&#39;re not a bot!</title><script id="anubis_challenge" type="application/json">{}</script>'
    ),
    "DDoS-Guard": response(
        "<title>DDoS-Guard</title><script src='/.well-known/ddos-guard/js-challenge/index.js'></script>", status=403
    ),
    "AWS": response("", status=202, x_amzn_waf_action="challenge"),
    "a title, in another language": response("<title>请稍候…</title><div>loading</div>"),
    "a captcha of the forum's own": response("<title>Verify you are human</title><img src=captcha.png>"),
    "a refusal with a title": response("<title>Access denied</title>", status=403),
}


@pytest.mark.parametrize("name", CHALLENGES)
def test_a_challenge_is_one_whatever_its_status(name: str) -> None:
    found = verdict(CHALLENGES[name])
    assert found is not None
    assert found.cause is Cause.CHALLENGE
    assert not found.this_page_only


@pytest.mark.parametrize(
    ("status", "cause"),
    [(401, Cause.LOGIN), (403, Cause.REFUSED), (451, Cause.REFUSED), (429, Cause.BUSY), (503, Cause.BUSY), (522, Cause.BUSY)],
)
def test_refusals_have_their_cause(status: int, cause: Cause) -> None:
    found = verdict(response("<p>no</p>", status=status, retry_after="120"))
    assert found is not None
    assert (found.cause, found.excerpt) == (cause, "no")
    assert found.retry_after == ("120" if cause is Cause.BUSY else "")


@pytest.mark.parametrize("status", [304, 400, 404, 410, 500])
def test_an_ordinary_error_of_one_page_is_no_matter_of_the_site(status: int) -> None:
    assert verdict(response("<p>no</p>", status=status)) is None


@pytest.mark.parametrize("body", ["", " \r\n", "\ufeff"])
def test_an_empty_answer_that_says_all_is_well(body: str) -> None:
    found = verdict(response(body), "html")
    assert found is not None
    assert found.cause is Cause.EMPTY


def test_html_where_json_is_expected() -> None:
    found = verdict(response("<html><title>Forum</title><p>We moved"), "json")
    assert found is not None
    assert (found.cause, found.reason) == (Cause.FORMAT, "HTML where JSON is expected")
    assert verdict(TextResponse(URL, body=b'{"a": 1}'), "json") is None


@pytest.mark.parametrize(
    "url", ["http://forum.test/login", "http://forum.test/ucp.php?mode=login&x=1", "http://sso.test/users/sign_in?to=/t/1"]
)
def test_a_redirect_to_the_way_in(url: str) -> None:
    found = verdict(response("<p>who are you</p>", url=url, meta={"redirect_urls": [URL]}))
    assert found is not None
    assert (found.cause, found.this_page_only) == (Cause.LOGIN, True)


def test_a_page_that_was_asked_for_may_be_about_logging_in() -> None:
    url = "http://forum.test/forums/login-problems/"
    assert verdict(HtmlResponse(url, body=POSTS.encode(), request=Request(url))) is None
    found = verdict(response(POSTS, url=url, meta={"redirect_urls": ["http://forum.test/f/7"]}))
    assert found is None, "and may be redirected to, where its path only begins like that"


@pytest.mark.parametrize("title", ["Log in | Forum", "登录 - 论坛", "Anmelden"])
def test_a_login_page_with_status_200(title: str) -> None:
    found = verdict(response(THREAD.format(title=title, posts="")))
    assert found is not None
    assert found.cause is Cause.LOGIN


@pytest.mark.parametrize(
    "title",
    ["Just a moment, please", "I cannot log in!", "Access denied on my router", "DDoS-Guard or Cloudflare?", "Are you human?"],
)
def test_a_thread_about_walls_is_no_wall(title: str) -> None:
    talk = "<p>My page says _cf_chl_opt and anubis_challenge, and loads captcha-delivery.com and hcaptcha.com</p>"
    assert verdict(response(THREAD.format(title=title, posts=POSTS + talk)), "html") is None


def test_scripts_of_the_same_services_in_an_ordinary_page_are_no_wall() -> None:
    scripts = "<script src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'></script><script src='https://check.ddos-guard.net/check.js'></script>"
    scripts += (
        "<script src='https://www.google.com/recaptcha/api.js'></script><script src='/_Incapsula_Resource?SWJIYLWA=1'></script>"
    )
    assert verdict(response(THREAD.format(title="A thread", posts=scripts + POSTS)), "html") is None


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("<div class=h-captcha><script src='https://js.hcaptcha.com/1/api.js'></script>", Cause.CHALLENGE),
        ("<p>You must be logged in to do that.</p>", Cause.LOGIN),
        ("<p>抱歉，您尚未登录，没有权限访问该版块</p>", Cause.LOGIN),
        ("<p>Welcome to our new design</p>", Cause.FORMAT),
    ],
)
def test_what_is_behind_a_page_that_cannot_be_read(body: str, cause: Cause) -> None:
    found = unreadable(response(body), "has no table.rows, as each such page has")
    assert found.cause is cause
    assert "has no table.rows" in found.reason
    assert (without_rows(response(body)) is None) is (cause is Cause.FORMAT), "an empty forum is no wall"


def test_an_excerpt_is_text_of_one_line() -> None:
    body = b"<style>p{}</style><script>var a = '<p>';</script><h1>Stop\n</h1>\x00<p>You \xff are   blocked" + b"x" * 1000
    assert excerpt(body).startswith("Stop You � are blockedx")
    assert len(excerpt(body)) == 300
    assert excerpt(b'{"error": "login"}') == '{"error": "login"}'


def test_judging_an_ordinary_page_costs_little() -> None:
    page = response(THREAD.format(title="A thread", posts=POSTS * 4))
    assert least_cpu_s(lambda: [verdict(page, "html") for _ in range(100)], 0.2) < 0.2, "s for 100; it takes some 0.01"
