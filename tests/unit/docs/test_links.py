"""Links between the documents lead somewhere: files, and headings in them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks/results").glob("*.md")]
CODE = re.compile(r"`[^`\n]+`")  # of a regular expression, which may look like a link
LINK = re.compile(r"\]\((?!\w+://)([^)\s#]*)(?:#([^)\s]*))?\)")


def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_link_leads_somewhere() -> None:
    links = [(page, *found.groups()) for page in PAGES for found in LINK.finditer(CODE.sub("", page.read_text("utf-8")))]
    assert len(links) > 40, "the pattern still finds them"
    for page, path, anchor in links:
        target = page.parent / path if path else page
        assert target.exists(), f"{page.relative_to(ROOT)}: {path}"
        assert not anchor or anchor in anchors(target) or target.suffix != ".md", f"{page.relative_to(ROOT)}: #{anchor}"
