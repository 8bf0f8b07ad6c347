"""Marks of posts on a page: class names, ids and addresses as evidence of an element's role (they are English in most software,
in any forum's language), dates, authors, ids and texts.

Only evidence: an element's content and its variation from post to post weigh as much.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from forum_reader.dates.dates_in_text import LONGEST, Spotted, machine_date, spotted

if TYPE_CHECKING:
    from forum_reader.page.page_tree import PageTree


def _anywhere(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)


def _suggests(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Return a function that returns True if class names match an expression."""
    return lru_cache(maxsize=8192)(lambda name: pattern.search(name) is not None)


_AUTHOR = _anywhere(
    r"author|user_?-?name|user_?-?id(?:$|\s)|poster(?!ior)|nick(?:name)?|(?:^|[\s_-])(?:user|member|creator|handle|byline|owner|from|who|writer)(?:$|[\s_-])|membername|screen-?name|"
    r"(?:^|[\s_-])(?:(?:be)?nutzer|verfasser|auteur|autore|pseudo|utente|usuario|utilizador|gebruiker|avtor)(?:name)?(?:$|[\s_-])|"
    r"(?:guest|visitor|client|customer|player)[_-]?name|user-?link|(?:^|\s)bigusername|display-?name|person-?name|fullname|hnuser|autor"
)
_ABOUT_AUTHOR = _anywhere(
    r"row|info|detail|title|avatar|count|stat(?:s|us|istics)|badge|rank|imag|pic(?:$|[\s_-]|ture)|photo|role|location|group|online|extra|menu|message|bio|repl(?:y|ied)|"
    r"joined|posts|karma|reputation|search|icon|signat"
)
_BODY = _anywhere(
    r"(?:post|message|comment|msg|answer|entry|reply|topic|item|thread|discussion|question)[_-]?(?:body|content|text|message|data|main|inner|entry)|"
    r"(?:^|[\s_-])(?:body|content|contents|text|message|md|markdown|prose|bbwrapper|cooked|usertext|posttext|postbody|post_message|richtext|rte|"
    r"rich-?content|user-?content|bbcode|t_f|description|articlebody)(?:$|[\s_-]|#)|userContent|bbWrapper|comment-?Content|postcontent|post_body|msgbody"
)
_OF_LAYOUT = re.compile(
    r"(?:^|(?<=\s))(?:text|content)-(?:wrap|break|nowrap|muted|truncate|center|left|right|start|end|justify|primary|secondary|body|"
    r"sm|lg|base|white|black|dark|light|[a-z]+-\d+|\d?x[sl])(?=$|\s)"
)
"""Classes of CSS frameworks that only lay out, although they contain words of the patterns below."""
_BESIDE = _anywhere(r"modal|popup|pop-up|dialog|dropdown|tooltip|side-?bar|footer|report|cookie|consent")
_META = _anywhere(
    r"signat|(?:^|[\s_-])sig(?:$|[\s_-])|side-?bar|user-?(?:info|profile|details|data|card|meta|stats|badge|title|rank|pic|avatar)|avatar|poster-?(?:info|profile)|"
    r"postprofile|post-?(?:meta|controls|footer|foot|head|header|buttons|actions|tools|options|nav|number|date|author|details)|toolbar|toolbox|"
    r"reactions?|(?:^|[\s_-])(?:likes?|thanks|votes?|voting|vote|score|share|sharing|report|reply-?link|controls|buttons|actions|tools|menu|nav|"
    r"navigation|breadcrumbs?|pagination|pager|footer|foot|ads?|advert|advertisement|banner|sponsored?|promo|tooltip|related|recommended|similar|"
    r"badges?|awards?|rank|rating|flair|permalink|timestamp|date|time|moderat(?:e|ion)|sr-only|visually-?hidden|hidden|attribution|edited|notice|"
    r"lastedit|edit-?(?:note|by|info|date)|dropdown|modal|popup|tags?|byline|karma|online|offline|status)(?:$|[\s_-])|"
    r"message-?(?:user|attribution|footer|actionbar|lastedit|meta|cell--user)|adsbygoogle|likebar|ipsComment_controls|ipsItemControls|postfoot|posthead|sharebar"
)
suggests_meta = _suggests(_META)
"""Returns True if class names mark things around the text: buttons, details of the author, votes."""
_SIGNATURE = _anywhere(r"signat|(?:^|[\s_-])sig(?:$|[\s_-])|user-?sig|moderatorbar")
suggests_signature = _suggests(_SIGNATURE)
"""Returns True if class names mark a signature."""
_EDITED = _anywhere(r"last-?edit|edited|edit-?(?:note|by|info|date|message)|(?:^|[\s_-])notice(?:$|[\s_-])|pstatus|modified")
suggests_edited = _suggests(_EDITED)
"""Returns True if class names mark a note of an edit."""
_COMMENT = _anywhere(r"comment|kommentar|koment|coment|review|bewertung|rezension|reactie|opini|guestbook|gästebuch|отзыв")
suggests_comment = _suggests(_COMMENT)
"""Returns True if class names mark a comment on the page's subject, or a review of it."""
_QUOTE = _anywhere(r"quot|zitat|cita(?:t|ç|ci)")
suggests_quote = _suggests(_QUOTE)
"""Returns True if class names mark a quote."""
_PROFILE_LINK = re.compile(
    r"(?:^|[/?&._=-])(?:members?|users?|profiles?|profil\w*|membres?|mitglied\w*|benutzer\w*|utenti?|usuarios?|memberlist|people|author|u|space|uid|"
    r"us(?:e)?rinfo|user_info|showuser|user_profile|memberId|account|home\.php|auteur|persons?|contributors?|experts?|doctors?|specialists?)(?:[/?&=.,:;_-]|\.php|\d|$)|/[@~][a-zA-Z_]",
    re.IGNORECASE,
)
_NOT_PROFILE = re.compile(
    r"(?:sendmessage|sendpm|privmsg|conversations?/add|do=(?:add|new|find|search|report)|action=(?:pm|email)|[?&]tab=|login|signup|(?<![a-z])(?:log-in|logon|sign[-_]?(?:in|up|on))(?![a-z])|regist|pass(?:word|wort)|forgot|/search|mailto:|javascript:|"
    r"[?&]\w+=/?(?:topics?|threads?|categor(?:y|ies)|forums?|boards?|questions?)(?:[/&-]|$)|user_talk[:/]|[#?&](?:quote|reply|report)|/(?:posts|comments|topics|reactions|badges|following|report|edit|content|stats|messages)/?(?:$|[?#])|memberlist(?:\.php)?$|memberlist\.php\?(?!.{0,200}(?:viewprofile|\bu=))|/members/?$|/users/?$|"
    r"accounts?/?(?:[?#]|$)|account[/-](?:create|edit|show|index)|(?:my|your|customer)[-_/]?account|/user/?$)",
    re.IGNORECASE,
)
_FORUM_LINK = re.compile(
    r"(?:^|[/?&=._-])(?:forum-?display|view-?forum|show-?forum|forums?/view|view-?board|boards?|categor(?:y|ies)|channels?|sections?|"
    r"subforums?|conversations)(?:[/?&=.,:_-]|\.php)|(?:^|[/?&])(?:fid=?|forum-|(?:forum|board|cat(?:egory)?)(?:_?id)?=)\d+|"
    r"[?&](?:a|act|action|mode|page|section)=(?:forum|board|category)(?:&|$)",
    re.IGNORECASE,
)
_ONE_FORUM = re.compile(
    r"(?:forum-?display|view-?forum|show-?forum)\.php|[?&]g=topics(?:&|$)|/list\.php\?\d+(?:,page=\d+)?$|"
    r"[/?&]forums?/(?:\d+[^/]*|[^/]+\.\d+)/?$|/categories/[^/]+/?$",
    re.IGNORECASE,
)
"""Addresses that no thread has."""
_THREAD_LINK = re.compile(
    r"[?&](?:t|tid|p|pid|topic|thread)(?:_?id)?=|(?:view|show)-?(?:topic|thread)|(?:^|/)(?:topics?|threads?|questions?|t)/",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"(?:https?:)?//(?:[\w-]+\.)*(?:facebook|instagram|youtube|tiktok|twitter|linkedin|pinterest|snapchat|weibo|vk|twitch|x|t)\."
    r"(?:com|me|tv)(?:[/?#]|$)",
    re.IGNORECASE,
)
"""Social networks: links to a site's own channels or to its members elsewhere; never a post's author."""


@lru_cache(maxsize=8192)
def suggests_author(name: str) -> bool:
    """Return True if class names mark an author's name."""
    return bool(_AUTHOR.search(name)) and not _ABOUT_AUTHOR.search(name)


@lru_cache(maxsize=8192)
def suggests_body(name: str) -> bool:
    """Return True if class names mark the text of a post."""
    return bool(_BODY.search(_OF_LAYOUT.sub("", name))) and not _BESIDE.search(name)


@lru_cache(maxsize=8192)
def is_profile_link(href: str) -> bool:
    """Return True if an address looks like a member's profile."""
    return bool(_PROFILE_LINK.search(href)) and not _NOT_PROFILE.search(href) and not _NETWORK.match(href)


def is_forum_link(href: str) -> bool:
    """Return True if an address looks like that of a forum, a board or a category."""
    return (
        bool(_FORUM_LINK.search(href) or _ONE_FORUM.search(href)) and not _THREAD_LINK.search(href) and not is_profile_link(href)
    )


def is_one_forum(href: str) -> bool:
    """Return True if an address is that of a forum, and cannot be that of a thread in it."""
    return bool(_ONE_FORUM.search(href)) and not _THREAD_LINK.search(href)


_MOST_SPACED = 500  # characters of a text with the spaces of its markup
_LEAST_BODY = 15  # characters
_LONGEST_AGE = 30
_AGE = re.compile(r"\d{1,3}\+?\s?[^\W\d_]{1,12}(?:,?\s\d{1,2}\s?[^\W\d_]{1,12})?")
_OF_AGE = re.compile(r"(?:^|[\s_-])(?:age|ago|date|datetime|time|when|posted|created|(?:time)?stamp)(?:$|[\s_-])", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_TOOLTIPS = ("data-original-title", "data-content", "data-tooltip", "data-tippy-content")
DATE_DATA = ("data-time", "data-timestamp", "data-ts", "data-date", "data-utime", "data-epoch", "data-datetime")
"""Attributes from which scripts of forums read dates."""
_DATE_ATTRIBUTES = ("datetime", *DATE_DATA, "title", "aria-label", *_TOOLTIPS)
_HAVE_DATES = frozenset((*_DATE_ATTRIBUTES, "content"))
_DATE_NAME = re.compile(r"-(?:ts|utc|time|date|created|posted|published)(?:$|-)|(?:time|live|unix)-?stamp|date-?time|created-?at")
_PUBLISHED = frozenset(("datePublished", "dateCreated"))


@dataclass(slots=True)
class Marks:
    """Candidates on a page: dates (element: date), authors and ids (elements)."""

    dates: dict[int, Spotted] = field(default_factory=dict)
    authors: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    bodies: list[int] = field(default_factory=list)
    """Elements whose class marks a text, without elements that hold another one."""
    known: dict[tuple[object, int], Any] = field(default_factory=dict)
    """Findings about elements that do not depend on the blocks that they are in."""


def find_marks(tree: PageTree) -> Marks:
    """Collect the marks of a page from each element's attributes and each short text."""
    marks = Marks()
    chars, first, last = tree.chars, tree.first_text, tree.last_text
    _date_texts(tree, marks)
    for i, attributes in enumerate(tree.attributes):
        if not attributes:
            continue
        if names := _date_names(tuple(attributes)):
            _date_attribute(i, attributes, names, marks)
        name = attributes.get("id")
        if name and name[-1].isdigit():
            marks.ids.append(i)
        size = chars[last[i]] - chars[first[i]]
        if not size:
            continue
        classes = attributes.get("class")
        if size <= 60 and ((classes and suggests_author(classes)) or _is_author(attributes)):
            marks.authors.append(i)
        if size >= _LEAST_BODY and classes and _is_body(classes):
            if marks.bodies and i < tree.end[marks.bodies[-1]]:
                marks.bodies.pop()
            marks.bodies.append(i)
    return marks


def _is_author(attributes: dict[str, str]) -> bool:
    """Return True if an element leads to a profile, or is named an author by other attributes than its class."""
    href = attributes.get("href")
    if href is not None and is_profile_link(href):
        return True
    return "author" in attributes.get("itemprop", "") or "author" in attributes.get("rel", "")


@lru_cache(maxsize=8192)
def _is_body(classes: str) -> bool:
    return suggests_body(classes) and not suggests_quote(classes)


def _age(tree: PageTree, i: int, text: str) -> Spotted | None:
    """Return the date of an age without "ago" (`3 hours`), in an element whose tag or class marks a date."""
    if len(text) > _LONGEST_AGE or not _AGE.fullmatch(text.strip()):
        return None
    names = (tree.attributes[j].get("class", "") for j in (i, tree.parent[i]) if j >= 0)
    return spotted(f"{text.strip()} ago") if tree.tag[i] == "time" or any(map(_OF_AGE.search, names)) else None


def _date_texts(tree: PageTree, marks: Marks) -> None:
    known: dict[str, Spotted | None] = {}
    for k, text in enumerate(tree.texts):
        if len(text) > LONGEST and (len(text) > _MOST_SPACED or len(text := " ".join(text.split())) > LONGEST):
            continue
        if text not in known:
            known[text] = spotted(text)
        owner = tree.owner[k]
        date = known[text] or _age(tree, owner, text)
        if date is None:
            continue
        if date.precision < 4:  # the time, or the year, may stand in the next element
            around = tree.parent[owner] if tree.size(owner) == len(text) else owner
            if around >= 0 and tree.size(around) <= 80:
                richer = spotted(tree.string(around))
                date = richer if richer is not None and richer.precision > date.precision else date
        if date.precision > 1 and (owner not in marks.dates or marks.dates[owner].precision < date.precision):
            marks.dates[owner] = date


@lru_cache(maxsize=1024)
def suggests_date(name: str) -> bool:
    """Return True if an attribute's name marks a date."""
    return bool(_DATE_NAME.search(name))


@lru_cache(maxsize=4096)
def _date_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the attributes that may hold a date, of an element with attributes of these names: elements repeat."""
    if not _HAVE_DATES.isdisjoint(names):
        return _DATE_ATTRIBUTES
    return tuple(name for name in names if name.startswith("data-") and suggests_date(name))


def _date_attribute(i: int, attributes: dict[str, str], names: tuple[str, ...], marks: Marks) -> None:
    if names is _DATE_ATTRIBUTES and attributes.get("itemprop") in _PUBLISHED:
        names = ("content", *names)
    for name in names:
        value = attributes.get(name)
        if (
            value
            and 5 < len(value) <= 60
            and _DIGIT.search(value)
            and (date := machine_date(value)) is not None
            and date.precision >= 3
        ):
            known = marks.dates.get(i)  # `2 years ago` is less than any day
            if known is None or known.back is not None or known.precision < date.precision or name in ("datetime", "content"):
                marks.dates[i] = date
            return
