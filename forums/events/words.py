"""Keywords in texts of any language: as a whole word where the script puts spaces between words, anywhere where it does not."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

import regex

_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"  # scripts without spaces between words
_LETTER = rf"[[\p{{L}}\p{{N}}\p{{M}}_]--[{_NO_SPACES}]]"  # what a neighbour must not be: it would make another word
_IS_LETTER = regex.compile(rf"(?V1){_LETTER}")


def folded(text: str) -> str:
    """Fold a text for comparison: full-width and half-width forms as one, without case."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=4096)
def keyword(words: str) -> regex.Pattern[str]:
    """Compile a keyword for a folded text. Spaces match any white space; `*` at the end stands for the rest of the word.

    `cat` is found in "a cat, two" and in "我的cat很好", not in "concatenate"; `显卡` in "新显卡到货". The cost is linear in
    the text: the pattern has no repetition of a repetition.
    """
    word = folded(words.strip())
    open_end = word.endswith("*")
    word = word.rstrip("*").rstrip()
    parts = r"\s+".join(re.escape(part) for part in word.split())
    before = rf"(?<!{_LETTER})" if _IS_LETTER.match(word[:1]) else ""
    after = rf"(?!{_LETTER})" if not open_end and _IS_LETTER.match(word[-1:]) else ""
    return regex.compile(f"(?V1){before}{parts}{after}")
