"""The shell commands that README.md and docs/*.md print in blocks, and for each whether it is run by a test or why it is not."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _is_read(page: Path) -> bool:
    return page.name != "cli.md" and page.parent.name in ("docs", "reference")


PAGES = [ROOT / "README.md", ROOT / "packaging/README.md"]
PAGES += [page for page in sorted((ROOT / "docs").rglob("*.md")) if _is_read(page)]
"""Without cli.md, which repeats the examples of the help, decisions, and docs/zh, whose commands a test compares with these."""
PROGRAMS = "trawl|make|docker|celery|python|pip|cp|redis-cli|scrapy|curl|grep|sudo|set|cd|mkdir|git|uv|export|kubectl|tar"
_COMMAND = re.compile(rf"^(?:\$ )?(?:[A-Z_]+=(?:\$\([^)]*\)|\S+) )*(?:{PROGRAMS}|\.)(?: |$)")
_OTHER_LANGUAGES = re.compile(r"^\s*```\s*(python|toml|json|yaml|yml|html|ini|sql|lua|text)")


@dataclass(frozen=True, kw_only=True)
class Documented:
    """A command in a block, without the prompt; a line that ends in a backslash goes on in the next one."""

    page: str  # relative to the checkout
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def in_blocks(page: Path) -> list[Documented]:
    """The commands in the indented and fenced blocks of a page, in its order."""
    found: list[Documented] = []
    fenced = other = goes_on = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced, other = not fenced, bool(_OTHER_LANGUAGES.match(line))
            continue
        text = line.strip().removeprefix("$ ") if (fenced and not other) or line.startswith("    ") else ""
        if goes_on and text:
            before = found.pop()
            found.append(Documented(page=before.page, line=before.line, text=f"{before.text[:-1].rstrip()} {text}"))
        elif _COMMAND.match(text):
            found.append(Documented(page=str(page.relative_to(ROOT)), line=number, text=text))
        else:
            continue
        goes_on = found[-1].text.endswith("\\")
    return found


def block_after(page: Path, words: str) -> str:
    """The text of the first block after the line with these words, without its indentation or fences."""
    text = page.read_text("utf-8")
    rest = text[text.index(words) :].partition("\n")[2]
    block: list[str] = []
    fenced = False
    for line in rest.splitlines():
        if line.startswith("```"):
            if fenced:
                break
            fenced = True
        elif fenced or line.startswith("    ") or (block and not line):
            block.append(line)
        elif block:
            break
    return textwrap.dedent("\n".join(block)).strip() + "\n"


def all_commands() -> list[Documented]:
    return [command for page in PAGES for command in in_blocks(page)]


NOT_RUN = {  # what a command begins with, or has in it -> why no test runs it as printed; the command line is parsed nevertheless
    r"^(\w+=\S+ )*docker |^kubectl ": "needs a container engine: make containers, make test-containers",
    r"^sudo |^set -a": "needs root, or another machine",
    r"^make (containers|test-containers)": "needs a container engine",
    r"^make test( |$)": "is the tests, of which this is one",
    r"^(make install|\. \.venv)": "is what the test begins with, as printed",
    r"^trawl config systemd": "needs a Redis that is named: tests/acceptance and tests/unit have its units",
    r"redis-cli\b": "needs a redis-cli; start tasks are pushed in tests/integration/test_start_tasks_crawl.py",
    r"^grep -rlw ": "changes the reader's project: tests/acceptance/scrapy_redis_project",
    r"^scrapy crawl": "needs a project for scrapy-redis: tests/acceptance/test_scrapy_redis_project.py",
    r"^trawl watch ": "is an address of others: tests/integration/test_watch.py watches the demo's forum",
    r"^trawl alert .*ntfy": "sends to a service of others: tests/integration/test_alerts.py",
    r"^trawl migrate ": "needs a crawl of scrapy-redis: tests/integration/test_migrate.py",
    r"^trawl backup restore ": "needs a fleet that has ended: tests/integration/test_backup.py",
    r"--to postgresql": "needs a server: tests/integration/test_consume.py",
    r"^trawl services versions use": "names a version that only its reader has: tests/integration/test_deploy.py",
    r"^make release": "needs a clone in which nothing is changed, not a copy of it: tests/unit/deploy/test_release.py",
    r"^TRAWL_FLEET=\S+ trawl up": "a second fleet next to the one that runs",
}


def why_not_run(text: str) -> str | None:
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, text)), None)
