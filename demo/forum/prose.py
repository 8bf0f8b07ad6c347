"""Generator of titles, bodies and names that read like a forum."""

from __future__ import annotations

from random import Random

from . import words


class Prose:
    """Writes text for one theme at a time; the text depends on the state of `rng` alone."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def author(self) -> str:
        """Return a user's name; a few users write often, most of them seldom."""
        first, second = self._rng.choice(words.AUTHOR_FIRST), self._rng.choice(words.AUTHOR_SECOND)
        number = int(self._rng.paretovariate(1.2))
        return f"{first}_{second}" if number == 1 else f"{first}_{second}{min(number, 99)}"

    def title(self, theme: words.Theme) -> str:
        """Return one line, not empty, with an upper-case first letter."""
        title = self._fill(self._rng.choice(words.TITLES), theme)
        return title[0].upper() + title[1:]

    def post_body(self, theme: words.Theme) -> str:
        """Return one to four paragraphs, separated by an empty line."""
        first = f"{self._rng.choice(words.OPENERS)} {self._paragraph(theme)}"
        return "\n\n".join([first, *(self._paragraph(theme) for _ in range(self._rng.randrange(4)))])

    def comment_body(self, theme: words.Theme) -> str:
        """Return a reaction, a paragraph, or both; seldom two paragraphs."""
        draw = self._rng.random()
        if draw < 0.25:
            return self._reaction(theme)
        if draw < 0.6:
            return f"{self._reaction(theme)} {self._paragraph(theme)}"
        if draw < 0.9:
            return self._paragraph(theme)
        return f"{self._paragraph(theme)}\n\n{self._paragraph(theme)}"

    def _reaction(self, theme: words.Theme) -> str:
        return self._fill(self._rng.choice(words.REACTIONS), theme)

    def _paragraph(self, theme: words.Theme) -> str:
        sentences = self._rng.sample(words.SENTENCES, self._rng.randint(1, 4))
        return " ".join(self._fill(sentence, theme) for sentence in sentences)

    def _fill(self, phrase: str, theme: words.Theme) -> str:
        a, b = self._rng.sample(theme.things, 2)
        return phrase.format(a=a, b=b)
