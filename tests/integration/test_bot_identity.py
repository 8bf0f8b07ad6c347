"""Requests that prove who sends them: what a site gets is verified here by RFC 9421 itself, not by the library that signed it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import redis
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from scrapy import Request
from scrapy.http import Response

from cli.main import main
from forums.records.start_tasks import ForumTask, encode
from forums.sites.http.fetch import Visitor
from monitoring.app import create_app
from monitoring.source import Source
from redis_components.errors import ConfigError
from redis_components.keys import CrawlKeys
from tests.integration.test_pages_login import Browser
from tests.support import warm_start
from tests.support.demo_sites import declare
from tests.support.fleet import ROOT
from tests.support.scrapy_command import crawl_command
from tests.support.watched_site import Page, WatchedSite
from workers.http.sign_requests import DIRECTORY, HEADERS, BotIdentity, SignRequests, bot_identity, new_key

AGENT = "https://bot.example.org"
_INPUT = re.compile(r"trawl=\((?P<covered>[^)]*)\)(?P<rest>;.+)")


@pytest.fixture
def identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BotIdentity:
    path = tmp_path / "bot.pem"
    path.write_bytes(new_key())
    monkeypatch.setenv("TRAWL_BOT_KEY_FILE", str(path))
    monkeypatch.setenv("TRAWL_BOT_AGENT", AGENT)
    found = bot_identity()
    assert found is not None
    return found


def verified(identity: BotIdentity, headers: dict[str, str], components: dict[str, str], tag: str) -> None:
    """Rebuild what was signed and check the signature with the key that the directory shows. Raises InvalidSignature."""
    (key,) = identity.directory()["keys"]
    public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
    found = _INPUT.fullmatch(headers["signature-input"])
    assert found is not None, headers["signature-input"]
    assert f'tag="{tag}"' in found["rest"]
    assert f'keyid="{key["kid"]}"' in found["rest"]
    created, expires = (int(re.findall(rf";{name}=(\d+)", found["rest"])[0]) for name in ("created", "expires"))
    assert 0 < expires - created <= 300
    assert found["covered"].split() == list(components)
    lines = [f"{name}: {value}" for name, value in components.items()]
    lines.append(f'"@signature-params": {headers["signature-input"].removeprefix("trawl=")}')
    signature = re.fullmatch(r"trawl=:([A-Za-z0-9+/=]+):", headers["signature"])
    assert signature is not None
    public.verify(base64.b64decode(signature[1]), "\n".join(lines).encode())


def of_request(authority: str) -> dict[str, str]:
    return {'"@authority"': authority, '"signature-agent"': f'"{AGENT}"'}


def test_every_request_of_a_crawl_and_of_a_visit_is_signed_for_the_host_that_gets_it(
    identity: BotIdentity, tmp_path: Path, redis_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAWL_SITES_DIR", str(tmp_path))
    with WatchedSite() as site:
        site.pages["/list/f1/1"] = Page(status=302, headers={"Location": "/moved"})
        site.pages["/moved"] = Page({"threads": [], "pages": 1})
        declare(tmp_path, "site", site.url)
        redis_client.rpush(CrawlKeys.for_spider("forum_list").start_tasks(), encode(ForumTask(site="site", forum="f1")))
        command = crawl_command("forum_list", "-s", "MAX_IDLE_TIME_BEFORE_CLOSE=1")
        environment = {**os.environ, "TRAWL_REDIS_URL": redis_url}
        done = warm_start.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stderr

        async def visit() -> None:
            async with Visitor(allow_private=True, obey_robots=False) as visitor:
                await visitor.get(f"{site.url}/moved")

        asyncio.run(visit())
        authority = site.url.removeprefix("http://")
        assert [path for path, _ in site.asked] == ["/list/f1/1", "/moved", "/moved"]
        for _, headers in site.asked:
            verified(identity, headers, of_request(authority), "web-bot-auth")
        nonces = [re.search(r'nonce="([^"]+)"', headers["signature-input"]) for _, headers in site.asked]
        assert len({found and found[1] for found in nonces}) == 3, "no signature comes twice"
        with pytest.raises(InvalidSignature):
            verified(identity, site.asked[0][1], of_request("other.example"), "web-bot-auth")


def test_a_signature_is_on_a_request_only_while_it_is_sent(identity: BotIdentity) -> None:
    signing = SignRequests(identity)
    for end in (
        lambda request: signing.process_response(request, Response(request.url)),
        lambda request: signing.process_exception(request, OSError()),
    ):
        request = Request("https://forum.example/a?b=c", headers={"Accept": "text/html"})
        signing.process_request(request)
        assert all(name in request.headers for name in HEADERS)
        end(request)
        assert [name for name in HEADERS if name in request.headers] == [], "a retry of it would be written to Redis"
        assert request.headers["Accept"] == b"text/html"


def test_the_page_serves_the_key_signed_by_itself(identity: BotIdentity, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser(app=create_app(Source(redis_url, {})), client="192.0.2.9")
    code, body, headers = browser.ask("GET", DIRECTORY)
    assert (code, headers["content-type"]) == (200, "application/http-message-signatures-directory+json")
    assert json.loads(body) == identity.directory()
    verified(identity, headers, {'"@authority";req': "localhost"}, "http-message-signatures-directory")
    for name in ("TRAWL_BOT_KEY_FILE", "TRAWL_BOT_AGENT"):
        monkeypatch.delenv(name)
    assert browser.ask("GET", DIRECTORY)[0] == 404


def test_a_key_is_made_once_and_shown_without_its_private_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bot.pem"
    assert main(["config", "signing-key", "new", str(path)]) == 0
    assert path.stat().st_mode & 0o777 == 0o600
    assert main(["config", "signing-key", "new", str(path)]) == 2
    assert "exists" in capfd.readouterr().err
    monkeypatch.setenv("TRAWL_BOT_KEY_FILE", str(path))
    monkeypatch.setenv("TRAWL_BOT_AGENT", AGENT)
    assert main(["config", "signing-key", "show"]) == 0
    said = capfd.readouterr()
    found = bot_identity()
    assert found is not None
    assert (json.loads(said.out), f"{AGENT}{DIRECTORY}" in said.err) == (found.directory(), True)
    assert "PRIVATE" not in said.out + said.err + repr(found)


WRONG: list[tuple[dict[str, str], str]] = [
    ({"TRAWL_BOT_AGENT": AGENT}, "TRAWL_BOT_KEY_FILE, the private key, is missing"),
    ({"TRAWL_BOT_KEY": "nonsense"}, "TRAWL_BOT_AGENT, where its public part is served, is missing"),
    ({"TRAWL_BOT_KEY": "nonsense", "TRAWL_BOT_AGENT": AGENT}, "is not a private key in PEM without a password"),
    ({"TRAWL_BOT_KEY": "nonsense", "TRAWL_BOT_AGENT": "http://bot.example"}, "must be an https URL"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_half_an_identity_or_a_wrong_one_is_refused(given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=re.escape(said)):
        bot_identity()
