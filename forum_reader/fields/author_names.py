"""Words around an author's name, in the languages of forums: `posted by`, `wrote:`."""

from __future__ import annotations

import re
from collections.abc import Callable, Container

from forum_reader.dates.dates_in_text import LONGEST as DATE_LONGEST
from forum_reader.dates.dates_in_text import spotted
from forum_reader.dates.words import WEEKDAYS
from forum_reader.readers.block_paths import BlockPaths

LONGEST = 60
"""Characters of a name."""
SHORT_NAME = 40
_BY_WORDS = (
    r"^(?:(?:re: .{0,100})?(?:posted|written|started|asked|answered|submitted|sent|original post|geschrieben|verfasst|"
    r"erstellt|publié|post|message|mensaje|réponse|comment|reply|beitrag|nachricht|kommentar|antwort|bericht|reactie|inlägg|indlæg|innlegg|"
    r"wiadomość|escrito|publicado|inviato|scritto|geplaatst|skrevet|napisał|сообщение|ответ)\s+)?"
    r"(?:(?<=message |mensaje |réponse )de|by|von|par|por|da|door|av|af|przez|от|author|autor|"
    r"автор|作者|from|user|(?:vložil|napsal|odeslal)(?:/?a)?(?: uživatel)?)"
)
_LABELS = (
    r"^(?:lähettäjä|kirjoittaja|nimimerkki|avsändare|avsender|afsender|absender|verfasser|auteur|autore|szerző|"
    r"írta|yazan|yazar|gönderen|отправитель|投稿者|名前|发表者|發表者|글쓴이|작성자|ผู้เขียน)"
)
"""Before a colon, or alone in front of a name: `Lähettäjä: ida`."""
VERB = re.compile(
    r"(?:posted|written|started|asked|answered|replied|commented|submitted|sent|created|published|updated|edited|modified|date|geschrieben|"
    r"verfasst|erstellt|gepostet|beantwortet|publié|posté|répondu|escrito|publicado|enviado|inviato|scritto|geplaatst|"
    r"发表于|發表於|发布于|楼主|樓主|作者|написал|опубликовано|投稿日?|작성일?)",
    re.IGNORECASE,
)
BY = re.compile(rf"{_BY_WORDS}(?:\s*[:：]\s*|\s+)|{_LABELS}\s*[:：]\s*", re.IGNORECASE)
LABELLED = re.compile(
    rf"(?:{_LABELS}|^(?:(?:(?:posted|written|submitted) )?by|author|autor|автор|作者|from|von))\s*[:：]\s*\S", re.IGNORECASE
)
"""`Author: ida` as plain text, without a link."""
ENDS_BY = re.compile(r"\s(?:by|von|par|por|da|door|av|af|przez|от)\s*[:：]?$", re.IGNORECASE)
BEFORE_NAME = re.compile(rf"(?:{_BY_WORDS}|{_LABELS})\s*[:：]?$", re.IGNORECASE)
SPEECH_VERB = re.compile(
    r"(?<!\s)(?:\s++(?:says?|said|wrote|writes|schrieb|schreibt|sagte?|meinte?|a écrit|écrit|a dit|dit|dice|dijo|escribió|"
    r"comentó|disse|escreveu|comentou|scrive|ha scritto|ha detto|zegt|zei|schreef|säger|skriver|skrev|kirjoitti|sanoo|napisał\w*|"
    r"pisze|mówi|napsal\w*|píše|yazdı|dedi ki|пишет|написал\w*|говорит|сказал\w*|より|说道?|說道?|写道|寫道)"
    r"\s*+(?:[:：]|…|\.{3})?|\s*+[:：])\s*+$",
    re.IGNORECASE,
)
REPLY_TITLE = re.compile(r"(?:re|aw|antw(?:ort)?|sv|vs|odp|ответ|回[复覆]|답글)\s?(?:\[\d+\])?[:：]", re.IGNORECASE)
ENDS_WITH_VERB = re.compile(rf"(?<![\s,])[\s,]++(?:{VERB.pattern})\s*+[:：]?$", re.IGNORECASE)
RANK = re.compile(
    r"(?:\w+ )?(?:member|moderator|admin(?:istrator)?|staff|newbie|guest|user|contributor|regular|author|mitglied|benutzer|gast|"
    r"membre|modérateur|administrateur|invité|miembro|moderador|administrador|usuario|участник|модератор|админ(?:истратор)?|"
    r"новичок|гость|会员|版主|管理员|楼主|樓主)",
    re.IGNORECASE,
)
AROUND = " \xa0:,·|•-–—(@"  # a name


MAIL = re.compile(r"(?<!\s)\s*+[<(\[]?[^\s<>()@]{1,64}+(?:@|\(at\)| at )[^\s<>()@]++[>)\]]?$")
_BEFORE_DATE = re.compile(
    rf"(?:[\s,·|:(–—-]|\b(?:{'|'.join(map(re.escape, WEEKDAYS))}|"
    r"on|at|am|den|der|le|el|em|il|op|posted|geschrieben|posté)\b\.?){1,40}+$",
    re.IGNORECASE,
)
_A_DAY = 3  # precision of a date
_COLONS = " :："
_MOST_WORDS = 4
_MOST_LABELLED = 0.6  # of the blocks
_FIRST_TEXTS = 8  # of a block


def find_names(paths: BlockPaths, authors: dict[int, int]) -> dict[int, str]:
    """Find names without a separate element: of blocks without an author where others have one (`by ida: `), or of most
    blocks after a label (`<b>From:</b> ida <ida@example.org>`) or before the date.
    """
    if len(authors) >= 0.5 * paths.count:
        return _names_by(_by_parts, paths, authors, 0)
    for read, different in ((_after_label, 1), (_labelled, 2)):
        found = _names_by(read, paths, authors, _FIRST_TEXTS)
        if len(found) >= _MOST_LABELLED * paths.count and len(set(found.values())) >= min(different, len(found)):
            return found
    return {}


def _names_by(
    read: Callable[[list[str], int], str | None], paths: BlockPaths, authors: Container[int], behind: int
) -> dict[int, str]:
    """Return the first name that `read` finds in the first texts, or the last `behind`, of each block without an author."""
    found: dict[int, str] = {}
    for number, block in enumerate(paths.blocks):
        if number in authors:
            continue
        start, end = block.texts
        last = max(start + _FIRST_TEXTS, end - behind)
        known = [*range(start, min(end, start + _FIRST_TEXTS)), *range(last, end)]
        texts = [" ".join(paths.tree.texts[k].split()) for k in known]
        name = next((name for k in range(len(texts)) if (name := read(texts, k))), None)
        if name:
            found[number] = name
    return found


def is_byline(text: str) -> bool:
    """Return True if a text names an author and a date: `Asked by ida on 3 March 2019`."""
    return len(text) <= DATE_LONGEST and bool(named_after_by(" ".join(text.split())))


def _by_parts(texts: list[str], k: int) -> str | None:
    """Read the name behind `by`, in the same text or the next one: `by <b>ida</b> on 3 March`."""
    return named_after_by(texts[k]) or _after_label(texts, k)


def named_after_by(text: str) -> str | None:
    """Return the name in `posted by ida on 3 March 2019`; an empty one where the next element has it."""
    by = BY.match(text) if len(text) <= DATE_LONGEST else None
    if by is None:
        return None
    name = text[by.end() :]
    if (date := spotted(name)) is not None and date.precision >= _A_DAY:
        name = _BEFORE_DATE.sub("", name[: date.span[0]])
    name = SPEECH_VERB.sub("", name).strip(AROUND)
    return name if len(name) <= LONGEST else None


def _after_label(texts: list[str], k: int) -> str | None:
    """Read the name after a label: `From:`, `ida`."""
    if k + 1 < len(texts) and len(texts[k + 1]) <= LONGEST and BEFORE_NAME.match(texts[k]):
        return MAIL.sub("", texts[k + 1]).strip(AROUND) or texts[k + 1].lstrip(_COLONS)
    return None


def _labelled(texts: list[str], k: int) -> str | None:
    """Read a name after a label, or before the date: `— ida, Sunday, 5 March 2023`; `posted by ida on 5 March 2023`."""
    labelled = _after_label(texts, k)
    return _before_date(texts, k) if labelled is None else labelled


def _before_date(texts: list[str], k: int) -> str | None:
    if len(texts[k]) > DATE_LONGEST or (date := spotted(texts[k])) is None or date.precision < _A_DAY or not date.span[0]:
        return None
    before = texts[k][: date.span[0]]
    if before.rstrip().endswith((":", "：")):  # `Joined: `
        return None
    before = _BEFORE_DATE.sub("", before).strip(AROUND).partition(",")[0]  # a place may stand behind it
    name = ENDS_WITH_VERB.sub("", SPEECH_VERB.sub("", BY.sub("", before))).strip(AROUND)
    if VERB.fullmatch(name):
        return None
    return name if 0 < len(name) <= SHORT_NAME and name.count(" ") < _MOST_WORDS and any(map(str.isalpha, name)) else None
