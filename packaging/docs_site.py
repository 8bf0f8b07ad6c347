"""MkDocs hooks: pages outside docs/ (changelog, results, …) are added to the site, and links to them are rewritten.

A link to a file that is not a page (code, a configuration) becomes its path, since the site does not contain it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {  # path in the checkout -> path in the site
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "README.md": "project/readme.md",
    "packaging/README.md": "project/releasing.md",
    **{
        f"benchmarks/results/{page.name}": f"project/results/{page.name}"
        for page in sorted((ROOT / "benchmarks/results").glob("*.md"))
    },
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")

_CHINESE_BREAK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n *(?=[\u4e00-\u9fff])")
"""A line's end between Chinese characters, which a browser would show as a space."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of `PAGES` and an index of the decisions."""
    for source, place in PAGES.items():
        if (ROOT / source).exists():
            files.append(File.generated(config, place, content=(ROOT / source).read_text("utf-8")))
    files.append(File.generated(config, "decisions/index.md", content=_decisions()))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Turn each link that leaves docs/ into one within the site."""
    place = page.file.src_uri
    source = next((path for path, there in PAGES.items() if there == place), f"docs/{place}")

    def rewritten(link: re.Match[str]) -> str:
        bang, text, target, anchor = link[1], link[2], link[3], link[4] or ""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        there = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if there == "decisions":
            there = "decisions/index.md"
        if there is None or files.get_file_from_path(there) is None:
            return text if bang or "`" in text else f"{text} (`{path}`)" if text != path else f"`{path}`"
        return f"{bang}[{text}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{anchor})"

    return _CHINESE_BREAK.sub("", _LINK.sub(rewritten, markdown))


def _decisions() -> str:
    rows = []
    for page in sorted((ROOT / "docs/decisions").glob("*.md")):
        title = page.read_text("utf-8").splitlines()[0].lstrip("# ")
        rows.append(f"- [{title}]({page.name})")
    head = "# Decisions\n\nWhy Trawl was built this way: one record for each choice with an alternative.\n"
    return "\n".join([head, *rows, ""])
