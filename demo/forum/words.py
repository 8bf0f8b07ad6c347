"""Vocabulary of the forum's users, in which all words of its texts are, and the cache of rendered pages.

`{a}` and `{b}` in a phrase are two of the theme's things. The titles hold on purpose every character that breaks a careless
crawler: markup, both quotes, ampersands, letters and signs beyond ASCII."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, kw_only=True)
class Theme:
    """One forum's subject."""

    name: str
    about: str
    things: tuple[str, ...]


def _theme(name: str, about: str, things: str) -> Theme:
    return Theme(name=name, about=about, things=tuple(thing.strip() for thing in things.split(",")))


THEMES = (
    _theme(
        "Bread & Butter",
        "Sourdough, ovens, and the patience that both of them want.",
        "a rye starter, strong white flour, the autolyse, my cast-iron pot, an overnight proof, the crumb, spelt, "
        "a baking stone, the lame",
    ),
    _theme(
        "Bicycles <3",
        "Repairs, routes and rain gear.",
        "a hub gear, the bottom bracket, tubeless tyres, a steel frame, mudguards, the dynamo light, "
        "friction shifters, a pannier rack",
    ),
    _theme(
        "Home Servers",
        "Small machines, big uptimes.",
        "the reverse proxy, a mini PC, my backup script, the NAS, a mesh VPN, the UPS, the container host, "
        "a spare switch, the DNS resolver",
    ),
    _theme(
        "Kitchen Garden",
        "From seed to plate, slugs included.",
        "the compost heap, runner beans, a cold frame, garlic, the rain barrel, leaf mould, cherry tomatoes, raised beds, kale",
    ),
    _theme(
        "Analogue Photography",
        "Film, paper, chemistry.",
        "a rangefinder, the fixer, expired film, a contact sheet, the enlarger, push processing, a light meter, medium format",
    ),
    _theme(
        "Night Sky",
        "Telescopes, charts, cold fingers.",
        "a Dobsonian, the finder scope, averted vision, the Pleiades, a star chart, dew heaters, the eyepiece, Jupiter's moons",
    ),
    _theme(
        "Board Games",
        "Rules questions, house rules, and quarrels about both.",
        "the base game, a solo mode, the second edition, wooden meeples, the rulebook, the scoring track, "
        "a card drafter, co-op nights",
    ),
    _theme(
        "Trains & Timetables",
        "Slow travel at a good speed.",
        "the night train, a sleeper berth, an open ticket, the connection in Lyon, the branch line, a rail pass, the dining car",
    ),
)

TITLES = (
    "Has anybody tried {a} with {b}?",
    "{a} & {b}: worth the trouble?",
    "[solved] {a} stopped working after a week",
    '"{a}" or "{b}"? Please talk me out of both',
    "<rant> {a} </rant>",
    "It's {a}, isn't it? 🤔",
    "First steps with {a} 🎉",
    "What I learnt from {a}, {b} && a long winter",
    "Größe, Maß & {a}: how do you measure?",
    "{a} > {b} (change my mind)",
    "Café notes: {a} — an honest résumé",
    "Help! {a} does not like {b} 😅",
    "Show us {a} 📷",
    "Beginner's question about {a}",
    "初心者です: {a}",
)

OPENERS = (
    "Good morning all.",
    "Long-time reader, first post.",
    "I searched for this and found only threads from 2009.",
    "A short report, because others asked for one.",
    "Bear with me, this got longer than planned.",
    "Quick question before the weekend.",
)

SENTENCES = (
    "I spent most of Sunday on {a}, and it was still better than {b}.",
    "For me {a} only started to make sense once I stopped worrying about {b}.",
    "Everybody says that {a} is the hard part, but I think it is {b}.",
    "The shop had nothing but {a}, so I kept what I had.",
    "If {a} gives you trouble, check {b} first & save yourself an evening.",
    "My neighbour swears by {a}; I am not convinced.",
    "Last year's notes say <10 minutes, and that was optimistic.",
    "There is a photo somewhere, I'll add it when I find the cable.",
    "You'd think {a} were simple. You'd be wrong 🙂",
    "I measured twice, and the difference was 3–4 % at most.",
    "It worked, then it did not, then I touched {a} and it worked again.",
    'The manual calls it "{a}", which helps nobody.',
    "Give it time: {a} needs a week or two to settle.",
    "Next I want to try {b} together with {a}.",
)

REACTIONS = (
    "Thanks, that helped!",
    "Same here.",
    "I disagree, politely.",
    "Welcome to the club 🎣",
    "This is the way.",
    "+1 for {a}.",
    "Sorry to hear that.",
    "Ha! Exactly what happened to me.",
    "Could you say more about {b}?",
    "Für mich gilt das Gegenteil.",
)

AUTHOR_FIRST = (
    "quiet", "amber", "rusty", "northern", "slow", "hazel", "lucky", "mossy", "copper", "early", "wooden",
    "salty", "zoë", "łukasz", "naïve", "plain",
)  # fmt: skip
AUTHOR_SECOND = (
    "heron", "kettle", "badger", "lantern", "otter", "spoke", "walnut", "ferry", "sparrow", "anvil", "pebble", "moth", "thistle",
    "gull", "acorn", "dial",
)  # fmt: skip


class Prose:
    """Writes text for one theme at a time; the text depends on the state of `rng` alone."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def author(self) -> str:
        """Return a user's name; a few users write often, most of them seldom."""
        first, second = self._rng.choice(AUTHOR_FIRST), self._rng.choice(AUTHOR_SECOND)
        number = int(self._rng.paretovariate(1.2))
        return f"{first}_{second}" if number == 1 else f"{first}_{second}{min(number, 99)}"

    def title(self, theme: Theme) -> str:
        """Return one line, not empty, with an upper-case first letter."""
        title = self._fill(self._rng.choice(TITLES), theme)
        return title[0].upper() + title[1:]

    def post_body(self, theme: Theme) -> str:
        """Return one to four paragraphs, separated by an empty line."""
        first = f"{self._rng.choice(OPENERS)} {self._paragraph(theme)}"
        return "\n\n".join([first, *(self._paragraph(theme) for _ in range(self._rng.randrange(4)))])

    def comment_body(self, theme: Theme) -> str:
        """Return a reaction, a paragraph, or both; seldom two paragraphs."""
        draw = self._rng.random()
        if draw < 0.25:
            return self._reaction(theme)
        if draw < 0.6:
            return f"{self._reaction(theme)} {self._paragraph(theme)}"
        if draw < 0.9:
            return self._paragraph(theme)
        return f"{self._paragraph(theme)}\n\n{self._paragraph(theme)}"

    def _reaction(self, theme: Theme) -> str:
        return self._fill(self._rng.choice(REACTIONS), theme)

    def _paragraph(self, theme: Theme) -> str:
        sentences = self._rng.sample(SENTENCES, self._rng.randint(1, 4))
        return " ".join(self._fill(sentence, theme) for sentence in sentences)

    def _fill(self, phrase: str, theme: Theme) -> str:
        a, b = self._rng.sample(theme.things, 2)
        return phrase.format(a=a, b=b)


PAGE_SIZE = 20


class NoSuchPage(Exception):
    """There is no such forum, post or page, or no longer; the message names it and the existing ones. `status` is HTTP's."""

    def __init__(self, message: str, status: int = 404) -> None:
        super().__init__(message)
        self.status = status


class Bodies:
    """Renders each page once per revision of its owner (a forum, a thread, the world).

    Bounded by the forum's content: an owner's pages of an older revision are dropped when the first page of a newer one is
    requested.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, dict[Hashable, bytes]]] = {}

    def get(self, owner: str, revision: int, page: Hashable, render: Callable[[], bytes]) -> bytes:
        """Return the body of `owner`'s `page` at `revision`, from `render` if it is not cached."""
        kept = self._kept.get(owner)
        if kept is None or kept[0] != revision:
            kept = self._kept[owner] = (revision, {})
        body = kept[1].get(page)
        if body is None:
            body = kept[1][page] = render()
        return body


def page_count(entries: int, size: int = PAGE_SIZE) -> int:
    """Return the number of pages for `entries`, `size` each; an empty list has one, empty, page."""
    return max(1, -(-entries // size))


def page_number(text: str, pages: int, what: str) -> int:
    """Parse a page number. Raises NoSuchPage if it is not a number from 1 to `pages`."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if not 1 <= number <= pages:
        raise NoSuchPage(f"{what} has pages 1 to {pages}, not {text[:40]!r}")
    return number


def page_slice(number: int) -> slice:
    """Return the slice of the whole list for page `number` (from 1)."""
    return slice((number - 1) * PAGE_SIZE, number * PAGE_SIZE)
