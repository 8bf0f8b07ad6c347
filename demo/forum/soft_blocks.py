"""Soft blocks: answers with status 200 without content of the forum, as sites send them to suspected robots."""

from __future__ import annotations

import json

from .behaviour import Behaviour

LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in</title></head>
<body><main><h1>You must be logged in to see this page</h1>
<form class="login" method="post" action="/login"><label>User name <input name="username" autocomplete="username"></label>
<label>Password <input name="password" type="password" autocomplete="current-password"></label><button>Log in</button></form>
</main></body></html>
"""
CAPTCHA = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Just a moment...</title></head>
<body><main><h1>Checking that you are human</h1><p>Solve the captcha to go on.</p>
<form id="challenge-form" class="captcha" method="post" action="/challenge"><img src="/captcha.png" alt="captcha">
<input name="captcha" autocomplete="off"><button>Go on</button></form></main></body></html>
"""
EMPTY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Forum</title></head><body><main></main></body></html>
"""
_EMPTY_JSON = {
    "index": {"forums": []},
    "list": {"page": 1, "pages": 1, "threads": []},
    "thread": {},
    "comments": {"page": 1, "pages": 1, "comments": []},
}


def is_blocked(behaviour: Behaviour, page: str, forum: str | None) -> bool:
    """Return True if a page of this kind (`index`, `list`, `thread`, `comments`) and of this forum is blocked."""
    if not behaviour.wall or behaviour.wall_page not in ("", page):
        return False
    return behaviour.wall_forum in ("", forum)


def block_page(behaviour: Behaviour, page: str, *, as_json: bool) -> tuple[bytes, bool]:
    """Return the blocking body, and True if it is JSON: a login form and a captcha are always HTML."""
    if behaviour.wall == "empty" and as_json:
        return json.dumps(_EMPTY_JSON[page]).encode(), True
    return {"login": LOGIN, "captcha": CAPTCHA, "empty": EMPTY}[behaviour.wall].encode(), False
