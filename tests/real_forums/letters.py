"""Threads of letters to a mailing list, for archives of mail."""

from __future__ import annotations

import random
from email.message import EmailMessage
from email.utils import formatdate

LIST = "garden@example.org"
PEOPLE = ("Alice Ash <alice@example.org>", "Bob Birch <bob@example.org>", "Chloé Cèdre <chloe@example.org>")
BEGIN_S = 1_790_000_000


class Letters:
    """What was sent, by thread."""

    def __init__(self) -> None:
        self.count = 0
        """Letters that were written, those that were removed since among them."""
        self._threads: dict[int, list[EmailMessage]] = {}

    def write(self, thread: int, chance: random.Random) -> EmailMessage:
        """The next letter of a thread, in answer to an earlier one."""
        before = self._threads.setdefault(thread, [])
        self.count += 1
        letter = EmailMessage()
        letter["From"] = chance.choice(PEOPLE)
        letter["To"] = LIST
        letter["Date"] = formatdate(BEGIN_S + 61 * self.count)
        letter["Message-ID"] = f"<m{self.count}@example.org>"
        letter["Subject"] = f"Re: Topic {thread}" if before else f"Topic {thread}"
        text = f"Letter {self.count} of topic {thread}.\n\nSaid at some length, with an ümlaut.\n"
        if before:
            answered = chance.choice(before)
            letter["In-Reply-To"] = answered["Message-ID"]
            letter["References"] = " ".join(dict.fromkeys([str(before[0]["Message-ID"]), str(answered["Message-ID"])]))
            text += "\n> What was said before,\n> in two lines.\n\nAnd what is answered.\n"
        letter.set_content(text)
        before.append(letter)
        return letter

    def removed(self, count: int) -> list[EmailMessage]:
        """The last letters of so many long threads, which are not among what was sent any more."""
        long = [letters for thread, letters in self._threads.items() if thread >= 60 and len(letters) > 2]
        return [letters.pop() for letters in long[:count]]

    def ids(self) -> frozenset[str]:
        """The message ids of all that is left."""
        return frozenset(str(one["Message-ID"]).strip("<>") for letters in self._threads.values() for one in letters)
