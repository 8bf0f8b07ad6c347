"""Pages that are made to hurt, by what they abuse, in any size: for the tests of reading, and for sites that serve them."""

from __future__ import annotations

from collections.abc import Callable

PHPBB = '<body class="section-viewtopic">'
LIST = '<body class="section-viewforum"><ul class="topiclist topics">'
POST = PHPBB + '<div class="post" id="p1"><div class="content">'


def rows_within_rows(rows: int) -> str:
    """phpBB posts, each within the one before: the text of the last is in all."""
    return PHPBB + "".join(f'<div class="post" id="p{n}"><div class="content">hello {n} ' for n in range(rows))


def threads_within_threads(rows: int) -> str:
    """The same with rows of a list."""
    return LIST + "".join(f'<li class="row"><a class="topictitle" href="?t={n}">x</a>' for n in range(rows))


def cites(count: int) -> str:
    """Elements whose look depends on what is around them, deep down."""
    return POST + "<b>" * 950 + "<cite>x</cite>" * count


def cut_outs(count: int) -> str:
    """Parts that the site file cuts out, with text between them."""
    return POST + ('<div class="inline-attachment"></div>' + "y" * 30) * count


def bodies_within_bodies(count: int) -> str:
    """In one row what is a body, within another body."""
    return PHPBB + '<div class="post" id="p1">' + '<div class="content">text ' * count


def attributes(count: int) -> str:
    """One tag with many attributes."""
    return PHPBB + "<p " + " ".join(f"a{n:x}" for n in range(count)) + ">"


def quoted_attributes(count: int) -> str:
    """The same where each value has the end of a tag in it, and nothing is between them."""
    return PHPBB + "<p " + "".join(f'a{n:x}=">"' for n in range(count)) + ">"


def short_attributes(count: int) -> str:
    """The same, as many as two characters for each can hold; without the body of phpBB."""
    return "<p " + " ".join(chr(0x3400 + n) for n in range(count)) + ">"


def attributes_of_many(count: int) -> str:
    """Many tags with as many attributes as a tag may have."""
    tag = "<p " + " ".join(f"a{n:x}" for n in range(900)) + ">"
    return PHPBB + tag * (count // 900)


def quick_dates(count: int) -> str:
    """Rows whose dates are texts that are slow to read."""
    words = "mar 12 de la lundi 3 uhr at 7 may 2 in am pm an hace dias ago sept 5 um den el 9 le du"
    row = '<div class="post" id="p{0}"><p class="author">» {1} {0}</p><div class="content">x</div></div>'
    return PHPBB + "".join(row.format(n, words[n % 40 :]) for n in range(count))


def siblings(count: int) -> str:
    """Many empty rows."""
    return PHPBB + "".join(f'<div class="post" id="p{n}"></div>' for n in range(count))


def wrong_ends(count: int) -> str:
    """Ends of elements that do not match, deep down."""
    return PHPBB + "<i>" * 900 + "</b>" * count


PAGES: dict[str, tuple[Callable[[int], str], int]] = {
    "rows within rows": (rows_within_rows, 400),
    "more rows within rows": (rows_within_rows, 3_000),
    "threads within threads": (threads_within_threads, 900),
    "cites": (cites, 190_000),
    "cut-outs": (cut_outs, 90_000),
    "bodies within bodies": (bodies_within_bodies, 900),
    "dates": (quick_dates, 500),
    "siblings": (siblings, 9_000),
    "wrong ends": (wrong_ends, 500_000),
}
"""Name -> how it is made, and a size that took long or yielded much."""

TAGS: dict[str, tuple[Callable[[int], str], int]] = {
    "attributes": (attributes, 60_000),
    "attributes with the end of a tag in each": (quoted_attributes, 60_000),
    "tags with many attributes": (attributes_of_many, 900_000),
}
"""What only a process apart may read."""
