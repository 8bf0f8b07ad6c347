"""Posts inferred from repeated structure: the sets of `repeated_blocks`, read by `block_fields`; the set that reads best wins."""

from __future__ import annotations

from dataclasses import dataclass

from .block_fields import Fields, posts_of, read_fields
from .lead_post import is_post, with_lead
from .page_tree import PageTree
from .post_calendar import Calendar
from .post_marks import Marks
from .records import SeenPost
from .repeated_blocks import Block, BlockSet, block_sets, without
from .text_field import size_of

_SUPERSET = 0.88  # of the best quality: a set that has all its blocks, and more
_SUPERSET_MARKED = 0.95  # of the share of blocks with author and date
_ADVERTISERS = frozenset(
    ("ad", "ads", "advert", "advertisement", "advertisements", "anzeige", "werbung", "publicité", "publicidad", "реклама", "广告")
)
_LEAST_LINKS = 5  # of a menu
_ENOUGH = 0.4  # a quality that sets with a score far behind are not read for
_BEHIND = 0.8
_SCORE = 0.2  # how far the score of a set decides between qualities that are nearly the same


@dataclass(slots=True)
class Learned:
    """The inferred posts, their quality (0 to 1), and the marks by which the blocks were found."""

    posts: tuple[SeenPost, ...]
    quality: float
    how: str
    fields: Fields


def learn(tree: PageTree, calendar: Calendar, marks: Marks) -> Learned | None:
    """Infer the posts of a page from its repeated structure; None where nothing repeats."""
    words = max(1, tree.chars[-1] - tree.link_chars[-1])
    read: list[Fields] = []
    for found in block_sets(tree, marks):
        if read and found.score < _BEHIND * read[0].found.score and max(one.quality for one in read) > _ENOUGH:
            break
        read.append(read_fields(tree, marks, found, calendar, words))
    if not read:
        return None
    best = _best(read)
    if len(_only_links(tree, best)) == best.paths.count - 1:
        return None  # one post, and a list of other threads
    if (fewer := _only_posts(best)) is not None:
        best = read_fields(tree, marks, fewer, calendar, words)
    best = _with_lead(tree, marks, best, calendar, words)
    return Learned(posts_of(best, calendar), best.quality, best.found.how, best)


def of_blocks(tree: PageTree, marks: Marks, found: BlockSet, calendar: Calendar) -> Learned:
    """Read the posts in the blocks of a set."""
    fields = read_fields(tree, marks, found, calendar, max(1, tree.chars[-1] - tree.link_chars[-1]))
    return Learned(posts_of(fields, calendar), fields.quality, found.how, fields)


def _marked(fields: Fields) -> float:
    """Return the share of blocks' authors and dates that were found."""
    return (len(fields.authors) + len(fields.dates.elements)) / (2 * fields.paths.count)


def _with_lead(tree: PageTree, marks: Marks, best: Fields, calendar: Calendar, words: int) -> Fields:
    """Add an opening post whose markup differs from the answers'; it replaces a first block that is only its head."""
    sets = [best.found]
    signs = [tree.sign[block.start] for block in best.found.blocks]
    if len(signs) > 2 and signs[0] not in signs[1:]:
        sets.append(without(tree, best.found, {0}))
    for found in sets:
        if (extended := with_lead(tree, marks, found)) is None or not _has_lead(tree, marks, extended, calendar):
            continue
        more = read_fields(tree, marks, extended, calendar, words)
        if is_post(more) and (found is best.found or size_of(more.paths, more.bodies[0]) > size_of(best.paths, best.bodies[0])):
            more.quality = max(more.quality, best.quality)
            return more
    return best


def _has_lead(tree: PageTree, marks: Marks, extended: BlockSet, calendar: Calendar) -> bool:
    """Return True if the first block, read with the next three alone, is a post."""
    few = without(tree, extended, set(range(4, len(extended.blocks))))
    return is_post(read_fields(tree, marks, few, calendar, 1))


def _only_posts(fields: Fields) -> BlockSet | None:
    """Return the set without blocks that are not posts: blocks without author and date, blocks around others that lack one of
    them where nearly all have both, and a first block with other markup. None where all are posts.
    """
    blocks, tree = fields.found.blocks, fields.paths.tree
    count = len(blocks)
    missing = [(fields.author(n) is None) + (fields.dates.published[n] is None) for n in range(count)]
    out = {
        n
        for n in range(count)
        if missing[n] == 2
        or (fields.author(n) or "").lower() in _ADVERTISERS
        or (missing[n] and (blocks[n].inner or _is_menu(tree, blocks[n])))
    }
    out |= _only_links(tree, fields)
    if missing.count(0) < 0.75 * (count - len(out)):
        out = set()
    signs = [tree.sign[block.start] for block in blocks]
    if count > 2 and signs[0] not in signs[1:] and not is_post(fields):
        out.add(0)
    return without(tree, fields.found, out) if out and count - len(out) > 1 else None


def _is_menu(tree: PageTree, block: Block) -> bool:
    """Return True if most of a block's text is in several links."""
    size = tree.chars[block.texts[1]] - tree.chars[block.texts[0]]
    return 2 * tree.written(*block.texts) < size and tree.tag[block.start : block.end].count("a") >= _LEAST_LINKS


def _only_links(tree: PageTree, fields: Fields) -> set[int]:
    """Return blocks whose text is only a link, with other markup than all blocks with text: similar threads below the posts."""
    sizes = [size_of(fields.paths, body) for body in fields.bodies]
    signs = [tree.sign[block.start] for block in fields.found.blocks]
    with_text = {sign for sign, size in zip(signs, sizes, strict=True) if size}
    return {
        number
        for number, (sign, size) in enumerate(zip(signs, sizes, strict=True))
        if not size and sign not in with_text and fields.bodies[number].root is not None
    }


def _best(read: list[Fields]) -> Fields:
    """Return the set of the highest quality, or a superset of its blocks that is nearly as good."""
    best = max(read, key=lambda one: one.quality * one.found.score**_SCORE)
    starts = {block.start for block in best.found.blocks}
    for one in read:
        others = {block.start for block in one.found.blocks}
        if (
            starts < others
            and _marked(one) >= _SUPERSET_MARKED * _marked(best)
            and one.quality >= _SUPERSET * best.quality
            and one.found.alike >= 0.9 * best.found.alike
        ):
            best, starts = one, others
    return best
