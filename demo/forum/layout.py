"""Frame of every HTML page: head, stylesheet, trail, pagination."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html import escape

STYLE = """
:root { color-scheme: light dark; --line: #8883; --soft: #888; --accent: light-dark(#9a3412, #fdba74); }
body { font: 17px/1.55 Georgia, "Times New Roman", serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
header, nav, footer, .meta { font: 14px/1.5 system-ui, sans-serif; color: var(--soft); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .6rem 0 .2rem; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
ol, ul { list-style: none; padding: 0; }
.threads > li, .forums > li { padding: .7rem 0; border-bottom: 1px solid var(--line); }
.forums p { margin: .1rem 0; }
.replies .replies { padding-left: 1.2rem; border-left: 2px solid var(--line); }
.comment { margin: 1.1rem 0; } .comment p { margin: .3rem 0; }
.comment:target { outline: 2px solid var(--accent); outline-offset: 6px; }
.badge { font: 12px system-ui, sans-serif; border: 1px solid currentColor; border-radius: 1em; padding: 0 .6em; }
.pages { display: flex; justify-content: space-between; margin: 1.5rem 0; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .6rem; }
"""

_DAY_S = 86_400
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>{trail}</header>
<main>
{main}
</main>
<footer>A forum that Trawl grows for its own demo. The same as JSON: <a href="{json}">{json}</a></footer>
</body>
</html>
"""


def page(*, title: str, trail: Iterable[tuple[str, str]], main: str, json: str) -> bytes:
    """Render a whole page; `title` and the (address, name) pairs of `trail` are plain text, `main` is markup, `json` a safe
    address.
    """
    links = " › ".join(f'<a href="{address}">{escape(name)}</a>' for address, name in trail)
    return _PAGE.format(title=escape(title), style=STYLE, trail=links, main=main, json=json).encode()


def pagination(address: str, number: int, pages: int) -> str:
    """Render links to the pages before and after, with their link relations; "" for a single page.

    As in many real forums, the last page has a next link too, which points at "#".
    """
    if pages == 1:
        return ""
    newer = f'<a rel="prev" href="{address}?page={number - 1}">← Previous</a>' if number > 1 else "<span></span>"
    following = f"{address}?page={number + 1}" if number < pages else "#"
    older = f'<a rel="next" href="{following}">Next →</a>'
    return f'<nav class="pages">{newer}<span>Page {number} of {pages}</span>{older}</nav>'


def moment(iso: str, kind: str, now: float) -> str:
    """Render a time: for people as "5 minutes ago", from a day on as a date, for programs to the second."""
    age_s = max(0, int(now - datetime.fromisoformat(iso).timestamp()))
    text = _ago(age_s) if age_s < _DAY_S else f"{iso[:10]} {iso[11:16]}"
    return f'<time class="{kind}" datetime="{iso}">{text}</time>'


def _ago(age_s: int) -> str:
    for unit, seconds in (("hour", 3600), ("minute", 60), ("second", 1)):
        if number := age_s // seconds:
            return f"{number} {unit}{'s' if number > 1 else ''} ago"
    return "just now"


def count(number: int) -> str:
    """Format a number as forums do: 999, then 1.2k."""
    return str(number) if number < 1_000 else f"{number / 1_000:.1f}k"


def paragraphs(text: str) -> str:
    """Render plain text as paragraphs, which an empty line separates in `text`."""
    return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n"))
