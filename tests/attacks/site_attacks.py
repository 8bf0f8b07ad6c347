"""What a hostile site does to a running fleet: pages, lists, redirects, robots.txt, answers; for `test_innocent_site.py`."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle

from tests.attacks import hostile_pages
from tests.attacks.attacked_fleet import AttackedFleet, json_site
from tests.attacks.two_sites import LOGIN, SECRET
from tests.support.fleet import ROOT
from tests.support.processes import wait_until
from tests.support.watched_site import Page
from workers.state.holds import Breakers

THREADS = 12
PHPBB = 'profile = "phpbb"\nbase_url = "{base}"\nforums = ["2"]\n[politeness]\nrate = 0\n{more}'
DEADLY = '[pages.comments]\nblock_page = "//p[preceding-sibling::p[preceding-sibling::p[preceding-sibling::p/@none]]]"\n'
Attack = Callable[[AttackedFleet, ExitStack], object]
Check = Callable[[AttackedFleet], object]
ATTACKS: dict[str, tuple[str, Attack, Check]] = {}
"""Name -> number in the issue's list of faults ("" for one that is not in it), what begins it, what must hold at its end."""


def attack(name: str, fault: str, then: Check = lambda fleet: None) -> Callable[[Attack], Attack]:
    def named(function: Attack) -> Attack:
        ATTACKS[name] = (fault, function, then)
        return function

    return named


def phpbb(fleet: AttackedFleet, page: str, more: str = "") -> None:
    """Each thread of the hostile board is this page."""
    rows = "".join(
        f'<li class="row"><dl><dt><a class="topictitle" href="/viewtopic.php?t={n}">thread {n}</a></dt><dd class="posts">3</dd>'
        f'<dd class="lastpost"><time datetime="2026-11-22T10:00:00+00:00">x</time></dd></dl></li>'
        for n in range(1, THREADS + 1)
    )
    listed = f'<html><body class="section-viewforum"><ul class="topiclist topics">{rows}</ul></body></html>'

    def answer(path: str) -> Page:
        return Page("no", 404) if path == "/robots.txt" else Page(listed if path.startswith("/viewforum") else page)

    serve(fleet, answer, PHPBB.format(base=fleet.evil.url, more=more))


def serve(fleet: AttackedFleet, answer: Callable[[str], Page], file: str, pages: int = 3) -> None:
    """Answer so, and let the fleet begin to read it: robots.txt, a list, a thread."""
    fleet.evil.answer = answer
    fleet.declare(file)
    wait_until(lambda: len(fleet.evil.asked) >= pages, lambda: f"the hostile site is read\n{fleet.fleet.said()}", 60)


def threads(fleet: AttackedFleet, thread: Callable[[str], Page], *, url: str = "", more: str = "") -> None:
    """A hostile site that answers with JSON: new rows in each look at its list, and what `thread` says at other paths."""
    looks = iter(range(10**6))

    def answer(path: str) -> Page:
        if path == "/robots.txt":
            return Page("no", 404)
        if not path.startswith("/list/"):
            return thread(path)
        look = next(looks)
        base = url or f"{fleet.evil.url}/x"
        return Page({"threads": [{"id": f"e{look}-{n}", "title": "t", "url": f"{base}/{look}-{n}"} for n in range(THREADS)]})

    serve(fleet, answer, json_site(fleet.evil.url, more=more))


def phpbb_list(fleet: AttackedFleet, page: str) -> None:
    """Its list is this page."""
    file = PHPBB.format(base=fleet.evil.url, more="")
    serve(fleet, lambda path: Page("no", 404) if path == "/robots.txt" else Page(page), file, pages=2)


def reads(page: str, more: str = "") -> Attack:
    return lambda fleet, _: phpbb(fleet, page, more)


for _name, (_make, _size) in hostile_pages.PAGES.items():
    attack(f"page: {_name}", "2")(reads(_make(_size)))
for _name, (_make, _size) in hostile_pages.TAGS.items():
    attack(f"page: {_name}", "2")(reads(_make(_size)))
attack("list: threads within threads", "2")(lambda fleet, _: phpbb_list(fleet, hostile_pages.threads_within_threads(900)))
attack("page that hangs an XPath of the site file", "2")(
    reads('<body class="section-viewtopic">' + "<p>x</p>" * 9_000 + "</body>", DEADLY)
)


def learns_nothing(fleet: AttackedFleet) -> None:
    assert SECRET not in fleet.innocent.said()
    assert fleet.texts() == [], "no text of the innocent site is stored as the hostile one's"


@attack("threads that redirect to the innocent site, with a login", "1", learns_nothing)
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    threads(fleet, lambda _: Page("moved", 302, {"Location": f"{fleet.innocent.url}/t/t1"}), more=LOGIN)


@attack("rows that are the innocent site's threads, with a login", "1", learns_nothing)
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    threads(fleet, lambda _: Page("no", 404), url=f"{fleet.innocent.url}/t/t1?", more=LOGIN)


@attack("robots.txt of 8 MB", "2")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    rules = "User-agent: *\n" + "".join(f"Disallow: /{n}*a*b*c*d*$\n" for n in range(300_000))
    serve(fleet, lambda path: Page(rules if path == "/robots.txt" else "no", 200), json_site(fleet.evil.url), pages=1)


@attack("dates beyond the calendar", "10")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    threads(fleet, lambda _: Page({"title": "t", "body": "b", "at": "31 Dec 9999 23:59 -1200", "replies": 0}))


@attack("values that no database takes", "")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    odd = {"title": "a\0b\ud800", "body": "\0\udfff" * 50, "author": "\0", "replies": 10**400, "at": 1e300}
    threads(fleet, lambda _: Page(odd))


@attack("titles that are markup of the terminal", "6")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    threads(fleet, lambda _: Page({"title": "[/red]\x1b]0;PWNED\x07\n=1+1", "body": "x", "author": "[bold]", "replies": 0}))
    for command in (["forums"], ["status"], ["events", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "cli.main", *command], cwd=ROOT, env=fleet.fleet.environment, capture_output=True, check=False
        )
        assert b"\x1b]" not in done.stdout + done.stderr
        assert b"fault in Trawl" not in done.stderr, done.stderr


@attack("threads and comments without end", "")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    pages = iter(range(10**6))

    def thread(path: str) -> Page:
        if not path.startswith("/comments/"):
            return Page({"title": "t", "body": "b", "replies": 10**6})
        number = next(pages)
        found = [{"id": f"c{number}-{n}", "body": "b" * 200} for n in range(100)]
        return Page({"comments": found, "next": f"{fleet.evil.url}/comments/more{number}"})

    threads(fleet, thread)


@attack("each answer comes late", "")
def _(fleet: AttackedFleet, stack: ExitStack) -> None:
    over = threading.Event()
    stack.callback(over.set)

    def slow(_: str) -> Page:
        over.wait(3600)
        return Page("late", 503)

    threads(fleet, slow)


@attack("threads that redirect without end", "")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    steps = iter(range(10**6))
    threads(fleet, lambda _: Page("moved", 302, {"Location": f"{fleet.evil.url}/next/{next(steps)}"}))


def is_not_asked(fleet: AttackedFleet) -> None:
    breakers = Breakers(fleet.client)
    wait_until(lambda: fleet.name in breakers.open_ones(), lambda: f"it is held\n{fleet.fleet.said()}", 60)
    assert "not to a public address" in breakers.open_ones()[fleet.name].reason
    assert fleet.evil.asked == []


@attack("threads that redirect to what is no address", "10")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    odd = cycle(
        (
            *("redis+sentinel://:pw@a:1,b:2/svc/0", "http://host[::1]@/", "http://[::ffff:127.0.0.1]:99999/", "http://xn--/"),
            *("//", "http:\\\\h", "file:///etc/passwd", "http://0x7f.1/", "http://h:0x50/", "\x1b]0;PWNED\x07", "http://\xb2/"),
        )
    )
    threads(fleet, lambda _: Page("moved", 302, {"Location": next(odd)}))


@attack("answers that unpack to 500 times their size", "")
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    bomb = gzip.compress(b" " * 100_000_000)
    threads(fleet, lambda _: Page(bomb, 200, {"Content-Encoding": "gzip"}))


@attack("a name that resolves to a private address", "9", is_not_asked)
def _(fleet: AttackedFleet, _: ExitStack) -> None:
    fleet.declare(json_site(f"http://{socket.gethostname()}:{fleet.evil.port}"))
