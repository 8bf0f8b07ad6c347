"""Repeated blocks other than posts: rows of a list of threads or forums, which have an author and a date each as posts have
(the longest text of most rows is a link, or each row has a different title that links to another page), boxes of other threads
next to the posts, forms, members, buttons, news.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from urllib.parse import parse_qsl, urljoin, urlsplit

from forum_reader.dates.dates_in_text import spotted
from forum_reader.dates.post_calendar import Calendar
from forum_reader.fields import post_marks
from forum_reader.fields.author_names import BEFORE_ANSWERED, SPEECH_VERB
from forum_reader.fields.post_marks import Marks
from forum_reader.fields.text_field import Body
from forum_reader.page.page_address import host_of, is_page_of
from forum_reader.page.page_tree import PageTree, Range, are_forms
from forum_reader.page.records import SeenLink

from .checks import is_complete
from .repeated_blocks import without
from .row_links import LEAST_ROWS, form_of, is_date, links_of, rows_of, suggests_threads
from .structure import PostPattern, of_blocks

_LEAST_TITLED = 3
_TITLED = 0.8  # of the blocks have different titles, where blocks are many
_TWICE = 0.5  # of the blocks have different titles, where each title has one address
_TITLES = 0.4  # of the blocks: some lists have two for each thread
_WRITTEN = 0.2
_MOST_LINKS = 3  # of a block that is a row
_SHORTEST_TITLE = 3  # characters
_LONGEST_TITLE = 250
_SHORT = 60  # characters of a post that may be a row
_SENTENCE = 20  # characters, at least
_LONG = 40
_LONGEST_EXCERPT = 800  # of a thread in a list
_WORD = re.compile(r"[^\W\d_]{2}")
_NUMBER = re.compile(r"\W*[^\W\d_]+\W*\d+(?:\W+[^\W\d_]+\W+\d+)?\W*")  # `Reply #3`, `message 48211`, `post #3 of 23`
_COUNT = re.compile(r"[^\W\d_]{0,20}[\s:：]*\d[\d.,kKM万 ]*[^\W\d_]{0,20}")  # `28 Replies`, `Views: 1,974`
_EASTERN = re.compile("[\u3040-\ud7ff]")
_OF_A_TITLE = re.compile(r"title|topic|thread|page|name|subject", re.IGNORECASE)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4"})
_OF_AN_ARTICLE = re.compile(r"title|headline|bookmark", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+$", re.IGNORECASE)  # a post may be no more than a link


def are_rows(learned: PostPattern, tree: PageTree) -> bool:
    """Return True if the learned blocks are rows of a list, not posts."""
    bodies = learned.fields.bodies
    if len(bodies) < LEAST_ROWS:
        return False
    dates = learned.fields.paths.marks.dates
    sizes = [_linked_and_written(tree, body, dates.keys()) for body in bodies]
    titles = sum(linked >= max(_SHORTEST_TITLE, written) for linked, written in sizes)
    posts = sum(written > linked for linked, written in sizes)
    return titles >= _TITLES * len(bodies) and posts <= _WRITTEN * len(bodies)


def _linked_and_written(tree: PageTree, body: Body, dates: Set[int]) -> tuple[int, int]:
    """Return the lengths of the longest text in a link and of the longest other text, dates excluded."""
    linked = written = 0
    for k in range(*body.texts):
        text = tree.texts[k].strip()
        if any(start <= k < end for start, end in body.without) or _ADDRESS.match(text):
            continue
        if tree.link_chars[k + 1] > tree.link_chars[k]:
            linked = max(linked, len(text))
        elif tree.owner[k] not in dates:
            written = max(written, len(text))
    return linked, written


def are_listed(learned: PostPattern, tree: PageTree) -> bool:
    """Return True if the learned posts are short texts in the rows of a list: numbers of answers and views, a name."""
    posts, fields = learned.posts, learned.fields
    if sorted(len(post.text) for post in posts)[len(posts) // 2] > 2 * _SHORT:
        return False
    sizes = sorted(_prose(post.text) for post in posts)
    if sizes[len(sizes) // 2] > _SHORT:
        return False
    links = links_of(tree, fields.paths.marks)
    if len(links) < _LEAST_TITLED:
        return False
    title, text = sorted(map(tree.size, links))[len(links) // 2], sizes[len(sizes) // 2]
    titles = {tree.string(i) for i in links}
    of_threads = suggests_threads(tree, links)
    sure = of_threads is False or (of_threads and len(links) >= LEAST_ROWS)
    if not sure and len(links) > _MOST_LINKS * len(posts):
        return False  # links to the author's other posts
    if not sure and 2 * title < text and 2 * sum(post.text.partition("\n")[0] in titles for post in posts) < len(posts):
        return False
    names = {post.author for post in posts}
    if 2 * sum(tree.string(i) in names for i in links) >= len(links) and len(names) < _TITLED * len(posts):
        return False
    blocks, rows = [(block.start, block.end) for block in fields.paths.blocks], rows_of(tree, links)
    return _overlapping(rows, blocks) >= _TITLED * len(rows) and _overlapping(blocks, rows) >= _TITLES * len(blocks)


def _prose(text: str) -> int:
    """Return the number of characters of a text's prose lines; a Chinese character, which is a word, counts as two."""
    return sum(len(line) + len(_EASTERN.findall(line)) for line in prose_lines(text))


def prose_lines(text: str) -> Iterable[str]:
    """Yield the lines of a text that are neither a date nor a number with its label."""
    return (line for line in text.splitlines() if line and not _COUNT.fullmatch(line) and not spotted(line))


def _overlapping(ranges: Sequence[Range], others: Sequence[Range]) -> int:
    """Count the ranges that overlap one of the others: more others begin before the range's end than end before its beginning."""
    starts, ends = sorted(start for start, _ in others), sorted(end for _, end in others)
    return sum(bisect_left(starts, end) > bisect_right(ends, start) for start, end in ranges)


def titled_rows(learned: PostPattern, tree: PageTree, url: str, base: str = "") -> tuple[SeenLink, ...]:
    """Return the titles of rows with more text than a title, as a forum's description or a thread's beginning: in each block a
    link at the same place, with a different text and target. None where blocks are posts: their links go to the author or to the
    post, are the same in all, or stand in a sentence or below the text (likes). Titles of whole articles are marked as titles. A
    thread may appear twice, in two boxes.
    """
    count = len(learned.fields.bodies)
    if count < _LEAST_TITLED:
        return ()
    long = sorted(len(post.text) for post in learned.posts)[len(learned.posts) // 2] > _LONGEST_EXCERPT
    links = [titles_of(learned, tree, url, base or url, number, marked=long) for number in range(count)]
    places = Counter(place for titles in links for place in {place for place, _ in titles})
    least = _TITLED * count if count >= LEAST_ROWS else count - learned.how.endswith("with lead")
    first = {place: sum(at for titles in links for at, (one, _) in enumerate(titles) if one == place) for place in places}
    for place, blocks in sorted(places.items(), key=lambda one: (-one[1], first[one[0]])):
        if blocks < least:
            break
        if 2 * sum(sum(one == place for one, _ in titles) >= _MOST_LINKS for titles in links) > count:
            continue  # links to the author's other posts
        rows = {n: row for n, titles in enumerate(links) for at, row in reversed(titles) if at == place}  # the first in each
        named = {row.title for row in rows.values() if not _NUMBER.fullmatch(row.title)}
        ends = [(row.title, row.url.rstrip("/").rpartition("/")[2]) for row in rows.values()]
        if all(end and title.startswith(end) for title, end in ends):  # `msg709 (view)`
            continue
        addresses = {row.url for row in rows.values()}
        if min(len(named), len(addresses)) >= (_TWICE * count if len(named) == len(addresses) else least):
            return _without_boards(rows, [tree.sign[block.start] for block in learned.fields.paths.blocks])
    return ()


def _without_boards(rows: dict[int, SeenLink], signs: list[int]) -> tuple[SeenLink, ...]:
    """Leave out rows of blocks with other markup and other forms of addresses than most: the sub-boards of a board."""
    most = Counter(signs[n] for n in rows).most_common(1)[0][0]
    forms = {form_of(row.url) for n, row in rows.items() if signs[n] == most}
    return tuple(row for n, row in rows.items() if signs[n] == most or form_of(row.url) in forms)


def titles_of(
    learned: PostPattern, tree: PageTree, url: str, base: str, number: int, *, marked: bool = False, outside: bool = False
) -> list[tuple[int, SeenLink]]:
    """Return the links of a block that may be its title, each with the sign of its parent; only links in headings with `marked`,
    only links outside of the text with `outside`.
    """
    body = learned.fields.bodies[number]
    inside = range(body.root, tree.end[body.root]) if outside and body.root is not None else range(0)
    block, author = learned.fields.paths.blocks[number], (learned.fields.author(number) or "").casefold()
    anchors, dates = _anchors(tree, block.start, block.end), learned.fields.paths.dates_in(number)
    return [
        (tree.sign[tree.parent[i]], SeenLink(url=target, title=text))
        for i in range(block.start, block.end)
        if tree.tag[i] == "a"
        and i not in inside
        and _SHORTEST_TITLE <= tree.size(i) < _LONGEST_TITLE
        and (href := tree.attributes[i].get("href"))
        and href.rpartition("#")[2] not in anchors  # the block itself
        and _WORD.search(text := tree.string(i))
        and (not author or author not in text.casefold() or post_marks.is_forum_link(href))
        and not is_date(tree, i, dates)
        and not _is_below(tree, i, body)
        and not _is_in_a_sentence(tree, i)
        and (not marked or _is_marked(tree, i))
        and (target := _target(href, url, base))
        and not _is_search(target, text)
    ]


def _is_marked(tree: PageTree, i: int) -> bool:
    """Return True if a link stands in a heading, and its class or `rel` marks it as a title."""
    up = tree.parent[i]
    around = tree.attributes[up]
    names = f"{around.get('class', '')} {around.get('itemprop', '')} {tree.attributes[i].get('rel', '')}"
    return tree.tag[up] in _HEADINGS and bool(_OF_AN_ARTICLE.search(names))


def _anchors(tree: PageTree, start: int, end: int) -> set[str]:
    """Return the ids and names in a block, by which a link refers to a part of it."""
    first = start - 1 if start and tree.end[start - 1] == start else start  # <a name> before it
    return {name for i in range(first, end) for key in ("id", "name") if (name := tree.attributes[i].get(key))}


def _is_search(target: str, text: str) -> bool:
    """Return True if an address is a search for the text of its link: `?location=Oslo`, `?q=pumps`."""
    pairs = parse_qsl(urlsplit(target).query)
    return any(value.casefold() == text.casefold() and not _OF_A_TITLE.search(name) for name, value in pairs)


def _is_in_a_sentence(tree: PageTree, i: int) -> bool:
    """Return True if words stand before a link on the same line."""
    start = tree.first_text[i]
    while start > tree.first_text[tree.parent[i]] and tree.gap[start] < 2:
        start -= 1
    return tree.written(start, tree.first_text[i]) >= _SENTENCE


def _is_below(tree: PageTree, i: int, body: Body) -> bool:
    """Return True if a link stands below most of a text."""
    start, end = body.texts
    before = tree.written(start, min(tree.first_text[i], end))
    return before >= _LONG and before > tree.written(tree.last_text[i], end)


def _target(href: str, url: str, base: str) -> str | None:
    """Resolve a link to another page of the site; None for profiles, other sites and the page itself."""
    try:
        target, here = urljoin(base, href).partition("#")[0], url.partition("#")[0]
        parts, own = urlsplit(target), urlsplit(here)
    except ValueError:
        return None
    is_elsewhere = host_of(parts) == host_of(own) and (parts.path, parts.query) != (own.path, own.query)
    return target if href and is_elsewhere and not post_marks.is_profile_link(href) else None


_MOST_IN_ONE = 4  # authors and dates of a post
_NEARLY_ONE = 0.6  # of the links to people
_DIGITS = re.compile(r"\d+")
_LEAST_ALONE = 0.1  # of dates and authors
_RANKS = 0.5  # of the rows of members: so few differ
_SHORT_ROW = 60  # characters of a member's row


def are_no_posts(learned: PostPattern, *, of_forum: bool) -> bool:
    """Return True if the blocks are not posts. `of_forum`: the page was made by forum software."""
    return (
        _hold_several(learned)
        or _are_in_forms(learned)
        or _are_members(learned)
        or _are_names(learned)
        or (not of_forum and _are_unsigned(learned))
    )


def _hold_several(learned: PostPattern) -> bool:
    """Return True if half of the blocks hold several posts or rows each, or hardly any date or author has a block to itself."""
    paths = learned.fields.paths
    if learned.fields.found.alone < _LEAST_ALONE:
        return True
    several = sum(
        min(len(paths.dates_in(n)), len(paths.authors_in(n))) > _MOST_IN_ONE and not _is_of_one(learned, n)
        for n in range(paths.count)
    )
    return 2 * several >= paths.count


def _is_of_one(learned: PostPattern, number: int) -> bool:
    """Return True if most links to people in a block share a number: a member's profile, mail, and friends."""
    paths = learned.fields.paths
    links = [link for i in paths.authors_in(number) if (link := paths.tree.attributes[i].get("href"))]
    ids = Counter(one for link in links for one in set(_DIGITS.findall(link)))
    return bool(ids) and max(ids.values()) >= _NEARLY_ONE * len(links)


def _are_in_forms(learned: PostPattern) -> bool:
    """Return True if the blocks are parts of a form page: some of few blocks have fields, and lack an author or a date."""
    tree = learned.fields.paths.tree
    return not is_complete(learned.posts) and are_forms(tree, [(block.start, block.end) for block in learned.fields.paths.blocks])


def _are_members(learned: PostPattern) -> bool:
    """Return True if the blocks are rows of a list of members: no name appears twice, and without dates and numbers most rows
    have the same text: a rank.
    """
    posts = learned.posts
    authors = {post.author for post in posts if post.author is not None}
    if len(posts) < LEAST_ROWS or len(authors) < len(posts):
        return False
    texts = Counter("\n".join(prose_lines(post.text)) for post in posts)
    return len(texts) <= _RANKS * len(posts) and max(map(len, texts)) <= _SHORT_ROW


def _are_names(learned: PostPattern) -> bool:
    """Return True if half of the texts are only the author's name, or all are by one author and undated: links and buttons."""
    posts = learned.posts
    if 2 * sum(post.text == post.author for post in posts) >= len(posts):
        return True
    return len({post.author for post in posts}) == 1 and all(post.published is None for post in posts)


def _are_unsigned(learned: PostPattern) -> bool:
    """Return True if no block has an author or an id: news, events."""
    return all(post.author is None and post.id is None for post in learned.posts)


_SHORTEST = 8  # letters of a title


def teasers(learned: PostPattern, tree: PageTree, url: str, base: str, titles: Sequence[str | None]) -> set[int]:
    """Return the blocks with titles of other threads outside of their text; `titles` are the page's own.

    None where such blocks stand between others, as each post may link another thread; where most have a title and name several,
    or all have one and some name several: text of their authors. Among blocks with the same markup none where only one has a
    title, the opening post with the title of the thread, or some stand before the others and some behind.
    """
    own = [letters for title in titles if len(letters := _letters(title or "")) >= _SHORTEST]
    counts = [_other_threads(learned, tree, url, base, own, number) for number in range(len(learned.fields.bodies))]
    found = {number for number, count in enumerate(counts) if count}
    others = [number for number, count in enumerate(counts) if not count]
    if len(found) > len(others) and 2 * sum(count > 1 for count in counts) > len(found):
        return set()
    if not others:
        return found if max(counts) == 1 else set()
    signs = [tree.sign[block.start] for block in learned.fields.paths.blocks]
    are_alike = any(signs[number] in {signs[other] for other in others} for number in found)
    if are_alike and (len(found) == 1 or (0 in found and len(counts) - 1 in found)):
        return set()
    return found if others == list(range(others[0], others[-1] + 1)) else set()


def without_teasers(learned: PostPattern, tree: PageTree, marks: Marks, calendar: Calendar, out: set[int]) -> PostPattern:
    """Return the learned posts without these blocks, unless these are all blocks."""
    if not 0 < len(out) < learned.fields.paths.count:
        return learned
    return of_blocks(tree, marks, without(tree, learned.fields.found, out), calendar)


def _other_threads(learned: PostPattern, tree: PageTree, url: str, base: str, own: Sequence[str], number: int) -> int:
    """Count the threads that titles in a block lead to."""
    here = urlsplit(url)
    address, found = _letters(here.path), set()
    for _, row in titles_of(learned, tree, url, base, number, outside=True):
        if SPEECH_VERB.search(row.title) or BEFORE_ANSWERED.search(row.title.rpartition(" ")[0]):
            continue  # the author of a quote or of the answered post
        target, words = urlsplit(row.url), _letters(row.title)
        is_own = is_page_of(target, here) if target.path == here.path else target.path.startswith(f"{here.path.rstrip('/')}/")
        is_named = words in address or any(words in title or title in words for title in own)
        if len(words) >= _SHORTEST and not is_named and not is_own and _are_alike(row.url, url):
            found.add(row.url)
    return len(found)


def _are_alike(one: str, other: str) -> bool:
    """Return True if two addresses have the same form: those of threads of one forum."""
    if form_of(one) == form_of(other):
        return True
    parts, others = (urlsplit(url).path.strip("/").split("/") for url in (one, other))
    return len(parts) == len(others) > 1 and parts[0] == others[0]


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
