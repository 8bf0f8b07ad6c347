"""The only message of a page, as of old boards that show a thread as a tree of titles below it: author and date stand in one line
or behind labels, and its text behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from forum_reader.dates.dates_in_text import LONGEST, Spotted, spotted
from forum_reader.fields import post_marks
from forum_reader.fields.author_names import AROUND, BY, LABELLED, MAIL, REPLY_TITLE, named_after_by
from forum_reader.reading.html_text import letters_of

from .arranged import HEADINGS, is_contents, parts_of, post_element
from .signatures import Link, Signature, read_line, time_before

_LONGEST_NAME = 60
_MOST_BYLINE = 200  # characters of a line with author and date
_LABELLED_LINES = 6  # lines in which labels of author and date stand together
_DATE_LABEL = re.compile(
    r"^\W*(?:date|posted(?: on)?|sent|time|datum|gesendet|erstellt|fecha|data|dato|päivä\w*|"
    r"dátum|дата|отправлено|日期|日時|投稿日\w*|날짜)"
    r"\s*[:：]\s*",
    re.IGNORECASE,
)
_ANSWERS = re.compile(
    r"^\W*(?:in (?:reply|response|answer) to|re(?:ply|sponse) to|antwort auf|en réponse à|en respuesta a|in risposta a|"
    r"em resposta a|als antwoord op|som svar (?:på|till)|w odpowiedzi (?:na|do)|в ответ на|回复|回覆|返信先)\b",
    re.IGNORECASE,
)
_MOST_LINKED = 0.5  # of a line that is text
_OF_THREAD = re.compile(
    r"^\W*(?:follow[- ]?ups?|complete thread|(?:whole|entire|this) thread|thread(?: overview| index)?|messages in this thread|"
    r"repl(?:y|ies)(?: to this)?|responses|answers|antworten|gesamter thread|réponses|respuestas|risposte|"
    r"odpowiedzi|ответы|回复|返信|関連|一覧|ツリー|スレッド)(?:\b|(?<=[\u3040-\u9fff]))[^.]{0,20}$",
    re.IGNORECASE,
)
_LABEL_LENGTH = 40
_A_DAY = 3  # precision of a date
_LARGE = frozenset({"p", "br", "table", "div", "ul", "ol", "blockquote", "pre", "form"})
_LABEL = re.compile(r"\s*[^\W\d_][^:：\n]{0,20}[:：]")
_LONE_LABEL = re.compile(r"\s{0,20}[^\W\d_][^:：\n]{0,20}")
_INNER_LABEL = re.compile(
    r"\s(?:author|from|name|posted by|autor|auteur|autore|verfasser|absender|von|afzender|автор|от|投稿者|名前|お名前|作者|"
    r"发表者|發表者|글쓴이|작성자)"
    r"\s?[:：]\s{0,5}(?=\S)",
    re.IGNORECASE,
)
"""Of an author, behind a title: `A door 投稿者：ida 投稿日：2026/11/20 09:05`."""
_NEXT_LABEL = re.compile(r"\s[^\W\d_]{2,12}\s?[:：]|\s\(|\s[-–—|·]\s")
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class _Line:
    """A line of a page: its copy, the element around it, text and links."""

    copy: Any
    around: Any
    text: str
    links: list[Link]

    @property
    def linked(self) -> int:
        """Return the number of characters in links that do not lead to people."""
        return sum(len(link.text.strip()) for link in self.links if not _is_of_person(link.href))

    @property
    def begins_with_link(self) -> bool:
        """Return True if the line begins with a link to a page: a row of a list."""
        first = next((link for link in self.links if link.text.strip()), None)
        return first is not None and not _is_of_person(first.href) and not any(map(str.isalnum, self.text[: first.start]))


class Message(NamedTuple):
    """The first message of a page: its fields, the lines of its text, the answered message's id; `rows`: of other messages
    behind it; `is_of_rows`: one of these has the message's title; `others`: further lines with an author and a date.
    """

    author: str
    date: str
    blocks: list[Any]
    parent: str | None
    rows: int
    is_of_rows: bool
    others: int

    @property
    def text(self) -> str:
        """Return its text."""
        return "\n".join("".join(block.itertext()) for block in self.blocks)


def find_message(root: Any, titles: Sequence[str | None] = ()) -> Message | None:
    """Find the first message of a page with these titles: author and date stand in one line, or behind labels, and its text
    behind them.
    """
    lines = list(_lines_of(root))
    head = _head(lines, 0)
    if head is None:
        return None
    author, date, last = head
    blocks, parent, end = _text_behind(lines, last)
    if not blocks:
        return None
    behind = [line for line in lines[end:] if isinstance(line, _Line)]
    rows = [letters for line in behind if (letters := _letters(_title_in(line)))]
    own = tuple(letters for title in titles if (letters := _letters(title or "")))
    while len(blocks) > 1 and _is_titled(blocks[-1], own):
        blocks.pop()
    lines_of_title = {letters for line in behind for one in own if (letters := _letters(line.text)).startswith(one)}
    named = any(row in one for row in rows for one in own) or any(_OF_THREAD.search(line.text[:_LABEL_LENGTH]) for line in behind)
    most = max(map(rows.count, rows), default=0)
    is_of_rows = bool(lines_of_title) or named or (most > 1 and 2 * most >= len(rows))
    others, place = 0, end
    while (other := _head(lines, place)) is not None:
        place = other[2] + 1
        start = _letters(lines[other[2]].text)
        others += not any(start.startswith(one) for one in (*own, *rows))
    return Message(author, date, blocks, parent, len(rows), is_of_rows and bool(rows), others)


def message(root: Any, found: Message | None = None) -> bool:
    """Arrange the only message of a page; return False, and leave the page as it is, where there is none."""
    found = found or find_message(root)
    if found is None:
        return False
    by = Signature(found.author, None, found.date, 0, is_wiki=False)
    post = post_element(found.blocks, "message", by, parent=found.parent)
    body = next(root.iter("body"), root)
    heading = next((one for one in body.iter("h1", "h2", "h3") if "".join(one.itertext()).strip()), None)
    for child in list(body):
        body.remove(child)
    body.text = None
    body.extend([*([heading] if heading is not None else []), post])
    return True


def _is_titled(block: Any, titles: tuple[str, ...]) -> bool:
    """Return True if a block is a row of the thread, one of its titles and a date, or the heading above its rows."""
    text = "".join(block.itertext())
    if _OF_THREAD.match(text):
        return True
    return len(text) <= _MOST_BYLINE and _letters(text).startswith(titles) and spotted(text[-LONGEST:]) is not None


def _letters(title: str) -> str:
    return letters_of(REPLY_TITLE.sub("", title).casefold())


def _lines_of(root: Any) -> Iterator[_Line | Any]:
    """Yield the lines of a page in order, and the elements that end a text: rules, forms, headings."""
    waiting: list[Iterator[Any]] = [iter([next(root.iter("body"), root)])]
    owners = [root]
    while waiting:
        part = next(waiting[-1], None)
        if part is None:
            waiting.pop()
            owners.pop()
        elif part.getparent() is None:
            text, links = read_line(part)
            if text.strip() or next(part.iter("img"), None) is not None:
                yield _Line(part, owners[-1], text, links)
        elif part.tag == "hr" or part.tag in HEADINGS or (part.tag == "form" and _asks(part)):
            yield part
        elif part.tag in ("tr", "dl") and (rows := list(_rows_in(part))):
            yield from rows
        elif not is_contents(part):
            waiting.append(parts_of(part))
            owners.append(part)


def _rows_in(part: Any) -> Iterator[_Line]:
    """Yield a row of a table, or terms with their descriptions, as lines where their cells are short: `From`, `ida`; a title, a
    name, a date.
    """
    pairs = [list(pair) for pair in pairwise(part) if [one.tag for one in pair] == ["dt", "dd"]]
    for cells in pairs if part.tag == "dl" else [list(part)]:
        whole = " ".join("".join(cell.itertext()) for cell in cells).strip()
        if (
            len(cells) < 2
            or len(whole) > _MOST_BYLINE
            or any(one.tag in _LARGE for cell in cells for one in cell.iterdescendants())
        ):
            continue
        copy = part.makeelement("div")
        copy.extend(map(deepcopy, cells))
        for cell in copy:
            cell.tail = " "
        if len(cells) == 2 and _LONE_LABEL.fullmatch("".join(copy[0].itertext())):
            copy[0].tail = ": "
        text, links = read_line(copy)
        if links or _LABEL.match(text):
            yield _Line(copy, part, text, links)


def _asks(form: Any) -> bool:
    return next(form.iter("textarea"), None) is not None


def _head(lines: list[_Line | Any], start: int) -> tuple[str, str, int] | None:
    """Return author, date, and the number of the line with the last of both."""
    for number, line in enumerate(lines[start:], start):
        if not isinstance(line, _Line) or len(line.text) > _MOST_BYLINE or _ANSWERS.match(line.text):
            continue
        if 2 * line.linked > len(line.text.strip()) or line.begins_with_link:
            continue
        text = " ".join(line.text.split())
        when = spotted(text[:LONGEST])
        author = _author_in(line, text, when)
        if author is None:
            continue
        if when is not None and when.precision >= 3 and when.year is not None:
            return author, text[time_before(text, when) :], number
        for other in range(max(start, number - _LABELLED_LINES), min(len(lines), number + _LABELLED_LINES)):
            near = lines[other]
            if isinstance(near, _Line) and len(near.text) <= _MOST_BYLINE and _DATE_LABEL.match(near.text):
                date = _DATE_LABEL.sub("", " ".join(near.text.split()))
                if (when := spotted(date[:LONGEST])) is not None and when.precision >= 3:
                    return author, date, max(number, other)
    return None


def _author_in(line: _Line, text: str, when: Spotted | None) -> str | None:
    """Return the name in a line: that of a marked element or of a link to a person, else what stands behind `by` or a label."""
    marked = next(
        (
            one
            for one in line.copy.iter("a", "span", "b", "strong", "em", "i", "font", "cite")
            if one.tag == "cite"
            or (one.tag == "a" and _is_of_person(one.get("href") or ""))
            or post_marks.suggests_author(one.get("class") or "")
        ),
        None,
    )
    is_headed = BY.match(text) or LABELLED.match(text)
    if marked is not None and (is_headed or when is not None):
        name = " ".join("".join(marked.itertext()).split())
        if 0 < len(name) <= _LONGEST_NAME and not spotted(name):
            return name
    if LABELLED.match(text) and when is None:
        name = MAIL.sub("", re.split("[:：]", text, maxsplit=1)[1]).strip(AROUND + "<>\"'")
        return name if 0 < len(name) <= _LONGEST_NAME else None
    if when is not None and (label := _INNER_LABEL.search(text[: when.span[0]])):
        name = _NEXT_LABEL.split(text[label.end() : when.span[0]], maxsplit=1)[0].strip(AROUND)
        return name if 0 < len(name) <= _LONGEST_NAME else None
    return named_after_by(text) or None


def _is_of_person(href: str) -> bool:
    return href.startswith("mailto:") or post_marks.is_profile_link(href)


def _text_behind(lines: list[_Line | Any], last: int) -> tuple[list[Any], str | None, int]:
    """Return the lines of the text behind the head, the id of the answered message, and the number of the line behind. The text
    ends at a rule, a form, a heading or a list of links, and with the innermost element around the head that holds more.
    """
    head = lines[last]
    blocks: list[Any] = []
    within, parent = None, None
    around = _upwards(head)
    for link in head.links:
        parent = parent or (_id_in(link.href) if link.text.strip().startswith("@") else None)
    end = len(lines)
    for number, line in enumerate(lines[last + 1 :], last + 1):
        end = number
        if not isinstance(line, _Line):
            if blocks:
                break
            continue
        if _ANSWERS.match(line.text) and not blocks:
            parent = next((_id_in(link.href) for link in line.links), None)
            continue
        if within is not None and within not in _upwards(line):
            break
        if blocks and _is_of_tree(line):
            break
        if line.links and line.linked > _MOST_LINKED * len(line.text.strip()):
            if blocks and _is_row(line):
                break
            if not blocks:
                continue
        if within is None:
            own = _upwards(line)
            shared = next(n for n, one in enumerate(own) if one in around)
            within = next((one for one in own[:shared] if post_marks.suggests_body(one.get("class") or "")), own[shared])
        blocks.append(line.copy)
    return blocks, parent, end


def _upwards(line: _Line) -> list[Any]:
    return [line.around, *line.around.iterancestors()]


def _is_row(line: _Line) -> bool:
    """Return True if a line is a row of other messages, or of buttons."""
    without = line.text.replace(line.links[0].text, "").strip(" .!?")
    return len(line.links) > 1 or not without or spotted(line.text[:LONGEST]) is not None


def _is_of_tree(line: _Line) -> bool:
    """Return True if a line is a linked title with a name and a date behind it."""
    text = " ".join(line.text.split())
    if not line.begins_with_link or not len(text) - line.linked <= _LONGEST_NAME:
        return False
    date = spotted(text[-LONGEST:])
    return date is not None and date.precision > _A_DAY


def _title_in(line: _Line) -> str:
    """Return the title in a row of messages, a link with a date behind it; an empty text of any other line."""
    links = [link for link in line.links if not _is_of_person(link.href) and link.text.strip()]
    if not links or len(line.text) > _MOST_BYLINE + 100 or spotted(" ".join(line.text.split())[-LONGEST:]) is None:
        return ""
    return max((link.text for link in links), key=len)


def _id_in(href: str) -> str | None:
    parts = urlsplit(href)
    numbers = _NUMBER.findall(parts.fragment or f"{parts.path}?{parts.query}")
    return numbers[-1] if numbers else None
