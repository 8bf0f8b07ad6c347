"""Elements of the posts of a page, which become the rows of a site file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from forums.sites.any_page.block_fields import Fields

from .opened_page import OpenedPage


@dataclass(slots=True)
class PostRows:
    """The rows of a page and the numbers of their blocks; `lead`: the block of an opening post outside the rows."""

    page: OpenedPage
    fields: Fields
    rows: list[Any]
    numbers: list[int]
    lead: int | None

    @property
    def are_alike(self) -> bool:
        """Return True if the rows are all of the same tag and class."""
        blocks, sign = self.fields.found.blocks, self.page.tree.sign
        return len({sign[blocks[number].start] for number in self.numbers}) == 1


def post_rows(page: OpenedPage) -> PostRows | None:
    """Return the elements of the blocks; of a post that is several siblings the one with its date or author."""
    if page.learned is None or not page.posts:
        return None
    fields, tree = page.learned.fields, page.tree
    blocks = fields.found.blocks
    signs = Counter(tree.sign[block.start] for block in blocks)
    is_lead = "lead" in fields.found.how or (len(blocks) > 2 and signs[tree.sign[blocks[0].start]] == 1)
    rows, numbers = [], []
    for number, block in enumerate(blocks):
        if number == 0 and is_lead:
            continue
        place = block.start
        if tree.end[block.start] < block.end:
            mark = fields.dates.elements.get(number, fields.authors.get(number, block.start))
            while tree.parent[mark] != tree.parent[block.start] and tree.parent[mark] > 0:
                mark = tree.parent[mark]
            place = mark
        rows.append(tree.elements[place])
        numbers.append(number)
    return PostRows(page, fields, rows, numbers, 0 if is_lead else None) if rows else None
