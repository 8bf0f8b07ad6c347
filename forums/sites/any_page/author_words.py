"""Words around an author's name, in the languages of forums: `posted by`, `wrote:`."""

from __future__ import annotations

import re

LONGEST = 60
"""Characters of a name."""
SHORT_NAME = 40
_BY_WORDS = (
    r"^(?:(?:re: .{0,100})?(?:posted|written|started|asked|answered|submitted|sent|original post|geschrieben|verfasst|"
    r"erstellt|publié|"
    r"escrito|publicado|inviato|scritto|geplaatst|skrevet|napisał|сообщение)\s+)?(?:by|von|par|por|da|door|av|af|przez|от|author|autor|"
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
BEFORE_ANSWERED = re.compile(
    r"(?:(?:repl(?:y|ies|ied|ying)|respon(?:se|ded|ds|ding)|answer(?:s|ed|ing)?) to|answered|antwort(?:ete)? (?:an|auf)|"
    r"(?:réponse|répond|répondu) à|(?:respuesta|respondió|responde) a|(?:resposta|respondeu|responde) a|"
    r"(?:risposta|risposto|risponde) a|(?:antwoord|reactie) (?:aan|op)|sva?r(?:te|ar|ade)? (?:på|til|till)|"
    r"odpowied(?:zi|ź|ział) (?:do|na|dla)|vastaus|yanıt|(?:в )?ответ(?:ил[аи]?)?(?: на| для)?|у відповідь|"
    r"回[复覆應应]了?|返信先?|답글|ตอบกลับ)\s*+(?:[:：]\s*+)?@?$",
    re.IGNORECASE,
)
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
