"""Weight of each heuristic of the reader: `python -m benchmarks.forums.reading_heuristics --pages FOLDER --texts FOLDER`.

Each function of the readers without a site file, and each branch in one, is switched off alone: the function returns nothing,
the branch is not taken. Then all pages are read on which it has an effect: `--pages` are annotated pages of 26 sites, `--texts`
are 91 pages with their main text. A site whose counts stay does not need the heuristic. Heuristics that no site and no text needs
are removed together, the least general first, as long as whole sites and F1 stay. `--own FILE` adds the pages of the project's
tests, recorded by `HEURISTICS_RECORD=FILE pytest -p benchmarks.forums.reading_heuristics tests/unit/forum_reader`.
"""

from __future__ import annotations

import argparse
import ast
import collections
import copy
import dataclasses
import functools
import importlib
import inspect
import json
import multiprocessing
import os
import re
import sys
import types
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOTS = ("fields", "readers", "page", "dates")
OUTSIDE = {
    "limited_reading",
    "profile_reader",
    "response",
    "soft_block",
    "records",
    "reader",
    "language",
    "normalised",
    "short_forms",
}
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
DECIDED = "## Removed on 2026-11-29\n"
RESULT = Path(__file__).parents[1] / "results" / "reading_heuristics.md"
_BODIES = {
    "bool": "return False", "list": "return []", "dict": "return {}", "set": "return set()", "frozenset": "return frozenset()",
    "float": "return 0.0", "int": "return 0", "tuple": "return ()", "Iterator": "return iter(())", "Iterable": "return ()",
}  # fmt: skip


@dataclasses.dataclass(slots=True)
class Heuristic:
    """A function, or a branch of one (`line`: its first), that can be switched off. `body`: the lines that then do not run."""

    module: str
    function: str
    line: int
    lines: int
    code: types.CodeType
    body: range

    @property
    def name(self) -> str:
        """Return the name in the table."""
        return f"{self.module.partition('.')[2]}.{self.function}" + (f":{self.line}" if self.line else "")


@dataclasses.dataclass(slots=True)
class Outcome:
    """What reading all pages gives: the counts of each annotated page, F1 of each text, and digests of own pages."""

    pages: dict[str, tuple[int, ...]]
    texts: dict[str, float]
    own: dict[str, str]

    def sites(self) -> dict[str, list[int]]:
        """Return the counts of each site: posts, found, with author, with date, reported, right ones of these."""
        found: dict[str, list[int]] = collections.defaultdict(lambda: [0] * 6)
        for url, counts in self.pages.items():
            site = urlsplit(url).netloc.removeprefix("www.")
            found[site] = [one + more for one, more in zip(found[site], counts, strict=True)]
        return found

    def whole(self) -> int:
        """Return the number of sites that are whole, as `score.py` counts them."""
        return sum(s[0] == s[1] and min(s[2], s[3]) >= 0.95 * s[0] and s[5] >= 0.9 * s[4] for s in self.sites().values())

    def f1(self) -> float:
        """Return the mean F1 of the texts."""
        return sum(self.texts.values()) / max(1, len(self.texts))


def modules() -> list[types.ModuleType]:
    """Return the modules whose functions are heuristics."""
    import forum_reader

    folder = Path(forum_reader.__file__).parent
    names = [f"forum_reader.{root}.{path.stem}" for root in ROOTS for path in sorted((folder / root).glob("*.py"))]
    return [importlib.import_module(name) for name in names if name.rpartition(".")[2] not in OUTSIDE | {"__init__"}]


def heuristics(module: types.ModuleType) -> Iterator[Heuristic]:
    """Yield a module's functions and branches, each with the code that runs where it is switched off."""
    path = Path(str(module.__file__))
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "main"]:
        length = (function.end_lineno or 0) - function.lineno + 1
        if (nothing := _nothing(function)) is not None:
            changed = _with(tree, function, [nothing])
            if (code := _code(changed, path, function)) is not None:
                body = range(function.body[0].lineno, (function.end_lineno or 0) + 1)
                yield Heuristic(module.__name__, function.name, 0, length, code, body)
        for branch in [node for node in ast.walk(function) if isinstance(node, ast.If | ast.AugAssign)]:
            copied = copy.deepcopy(tree)
            twin = next(n for n in ast.walk(copied) if type(n) is type(branch) and _at(n) == _at(branch))
            if isinstance(twin, ast.If):
                twin.test = ast.copy_location(ast.Constant(False), twin.test)
                body = range(branch.body[0].lineno, (branch.body[-1].end_lineno or 0) + 1)  # type: ignore[union-attr]
            else:
                twin.value = ast.copy_location(ast.Constant(0), twin.value)
                if not isinstance(twin.op, ast.Add | ast.Sub):
                    continue
                body = range(branch.lineno, (branch.end_lineno or 0) + 1)
            if (code := _code(copied, path, function)) is not None:
                yield Heuristic(module.__name__, function.name, branch.lineno, len(body) + 1, code, body)


def _at(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _nothing(function: ast.FunctionDef) -> ast.stmt | None:
    """Return the statement of a function that is switched off, by the type that it returns."""
    given = ast.unparse(function.returns) if function.returns else ""
    if "| None" in given:
        return ast.parse("return None").body[0]
    if given == "str" and function.args.args:
        first = next((one.arg for one in function.args.args if one.arg != "self"), None)
        return ast.parse(f"return {first}").body[0] if first else None
    text = _BODIES.get(given.partition("[")[0])
    return ast.parse(text).body[0] if text else None


def _with(tree: ast.Module, function: ast.FunctionDef, body: list[ast.stmt]) -> ast.Module:
    copied = copy.deepcopy(tree)
    twin = next(n for n in ast.walk(copied) if isinstance(n, ast.FunctionDef) and _at(n) == _at(function))
    twin.body = [ast.fix_missing_locations(ast.copy_location(one, function.body[0])) for one in body]
    return copied


def _code(tree: ast.Module, path: Path, function: ast.FunctionDef) -> types.CodeType | None:
    """Return the code object of a function in a changed module."""
    waiting = [compile(ast.fix_missing_locations(tree), str(path), "exec")]
    while waiting:
        code = waiting.pop()
        for one in code.co_consts:
            if isinstance(one, types.CodeType):
                first = function.decorator_list[0].lineno if function.decorator_list else function.lineno
                if one.co_name == function.name and one.co_firstlineno == first:
                    return one
                waiting.append(one)
    return None


class Switch:
    """The functions of the modules, of which the code of one at a time is replaced."""

    def __init__(self, found: Sequence[types.ModuleType]) -> None:
        self._of: dict[tuple[str, str, int], Any] = {}
        self._caches: list[Any] = []
        for module in found:
            for value in list(vars(module).values()):
                self._add(module, value)
                for inner in vars(value).values() if inspect.isclass(value) and value.__module__ == module.__name__ else ():
                    self._add(module, inner)

    def _add(self, module: types.ModuleType, value: Any) -> None:
        if hasattr(value, "cache_clear"):
            self._caches.append(value)
        function = getattr(value, "__wrapped__", None) or getattr(value, "fget", None) or getattr(value, "func", None) or value
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
            self._of[module.__name__, function.__name__, function.__code__.co_firstlineno] = function

    def set(self, one: Heuristic) -> types.CodeType | None:
        """Switch a heuristic off; return the code that it had. None where the function cannot be changed."""
        function = self._of.get((one.module, one.function, one.code.co_firstlineno))
        if function is None or function.__code__.co_freevars != one.code.co_freevars:
            return None
        before: types.CodeType = function.__code__
        self.put(one, one.code)
        return before

    def put(self, one: Heuristic, code: types.CodeType) -> None:
        """Give a function this code."""
        self._of[one.module, one.function, one.code.co_firstlineno].__code__ = code
        for cache in self._caches:
            cache.cache_clear()


class Corpus:
    """All pages, opened once: their trees, profiles and what these read do not depend on the heuristics."""

    def __init__(self, pages: Path, texts: Path, own: Path | None) -> None:
        self.gold: dict[str, Any] = {}
        self.html: dict[str, tuple[str, str, datetime]] = {}
        for file in sorted(pages.glob("*.json")):
            page = json.loads(file.read_text("utf-8"))
            self.html[f"p {page['url']}"] = (page["html"], page["url"], NOW)
            self.gold[f"p {page['url']}"] = page["gold_standard_annotation"]
        for file in sorted(texts.glob("*.json")):
            page = json.loads(file.read_text("utf-8"))
            html = file.with_suffix(".html").read_text("utf-8", "replace")
            gold = page["ground_truth"].get("main_content") or ""
            if "<script" in html and gold:
                url = page.get("url") or f"https://unknown.example/{file.name}"
                self.html[f"t {url}"], self.gold[f"t {url}"] = (html, url, NOW), words(gold)
        for line in own.read_text("utf-8").splitlines() if own else ():
            html, url, now = json.loads(line)
            self.html[f"o {len(self.html)}"] = (html, url, datetime.fromisoformat(now))
        self.opened: dict[str, Any] = {}

    def open(self) -> None:
        """Parse all pages, and read them by their profiles."""
        from forum_reader.readers import page_reader

        for key, (html, url, now) in self.html.items():
            try:
                page = page_reader._opened(html, url, now, profiles=True)
            except Exception:  # noqa: S112 - refused pages of tests
                continue
            if page.profile is not None:
                page.profile.posts = functools.partial(_same, page.profile.posts())  # type: ignore[method-assign]
            self.opened[key] = page
        by_page = {(html, url): key for key, (html, url, _) in self.html.items()}

        def opened(html: str, url: str, now: datetime, *, profiles: bool) -> Any:  # noqa: ARG001
            known = self.opened[by_page[html, url]]
            page = dataclasses.replace(known, root=copy.deepcopy(known.root), found={}, grades={})  # reading may arrange it
            page.__dict__["tree"] = known.tree
            return page

        page_reader._opened = opened

    def read(self, key: str) -> Any:
        """Return the counts, F1 or digest of one page."""
        from forum_reader.readers.page_reader import read_page

        html, url, now = self.html[key]
        try:
            page = read_page(html, url, now=now)
        except Exception as error:
            return {"p": (0,) * 6, "t": 0.0, "o": repr(error)}[key[0]]
        if key[0] == "o":
            return repr([page.kind, page.rows, page.next, page.posts])
        if key[0] == "t":
            return f1(words(" ".join(post.text for post in page.posts)), self.gold[key])
        return counted(self.gold[key], page.posts)


def _same(value: Any) -> Any:
    return value


def words(text: str) -> collections.Counter[str]:
    """Return the words of a text, as `score.py` counts them."""
    return collections.Counter(re.findall(r"\w+", (text or "").lower()))


def f1(one: collections.Counter[str], other: collections.Counter[str]) -> float:
    """Return the agreement of two bags of words."""
    if not one or not other:
        return float(not one and not other)
    both = sum((one & other).values())
    return 2 * both / (sum(one.values()) + sum(other.values()))


def counted(gold: list[dict[str, Any]], posts: Sequence[Any]) -> tuple[int, ...]:
    """Return the counts of a page, as in `score.py`."""
    wanted = [one for one in gold if one.get("post_text") and words(_plain(one["post_text"]["surface_form"]))]
    mine, used, found, authors, dates = [words(post.text) for post in posts], set(), 0, 0, 0
    golds = [words(_plain(one["post_text"]["surface_form"])) for one in wanted]
    for one, text in zip(wanted, golds, strict=True):
        best, i = max(((f1(own, text), i) for i, own in enumerate(mine) if i not in used), default=(0.0, -1))
        if best >= 0.8:
            used.add(i)
            found += 1
            name = f"{posts[i].author} <{unquote(posts[i].author_url or '')}>" if posts[i].author else None
            authors += _same_author(name, (one.get("user") or {}).get("surface_form"))
            dates += _same_date(posts[i].published, (one.get("datetime") or {}).get("surface_form"))
    with_words = [own for own in mine if own]
    right = sum(any(f1(own, text) >= 0.5 for text in golds) for own in with_words)
    return len(wanted), found, authors, dates, len(with_words), right


def _plain(text: str | None) -> str:
    return re.sub(r"<[^>]+>", " ", text or "")


def _same_author(got: str | None, gold: str | None) -> bool:
    a, b = re.sub(r"\W+", "", (got or "").lower()), re.sub(r"\W+", "", unquote(gold or "").lower())
    return bool(a) and (a == b or a in b or (len(b) > 2 and b in a))


def _same_date(when: datetime | None, gold: str | None) -> bool:
    from datetime import timedelta

    if when is None:
        return False
    numbers = [int(x) for x in re.findall(r"\d+", re.sub(r"\d{1,2}:\d{2}(:\d{2})?", " ", gold or ""))]
    if re.search(r"ago|vor |yesterday|today|gestern|heute|hier|il y a|前", (gold or "").lower()):
        return True
    around = [when + timedelta(days=d) for d in (-1, 0, 1)]
    years = [n for n in numbers if 1995 <= n <= 2035]
    if years and all(day.year != years[0] for day in around):
        return False
    if all(n in years for n in numbers):
        return True
    return bool({day.day for day in around} & set(numbers)) or bool(years and len(numbers) == 1)


class Ablation:
    """The corpus, the switch, and the pages on which each line runs."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.found = modules()
        self.switch = Switch(self.found)
        corpus.open()
        self.lines: dict[tuple[str, int], set[str]] = collections.defaultdict(set)
        self.before = self._traced()

    def _traced(self) -> Outcome:
        files = {str(module.__file__) for module in self.found}
        results = {}
        for key in self.corpus.opened:
            seen: set[tuple[str, int]] = set()

            def local(frame: Any, event: str, _: Any, seen: set[tuple[str, int]] = seen) -> Any:
                if event == "line":
                    seen.add((frame.f_code.co_filename, frame.f_lineno))
                return local

            def trace(frame: Any, _: str, __: Any, local: Any = local) -> Any:
                return local if frame.f_code.co_filename in files else None

            for cache in self.switch._caches:
                cache.cache_clear()
            sys.settrace(trace)
            results[key] = self.corpus.read(key)
            sys.settrace(None)
            for one in seen:
                self.lines[one].add(key)
        return _outcome(results)

    def affected(self, one: Heuristic) -> set[str]:
        """Return the pages on which a heuristic's lines run."""
        file = str(sys.modules[one.module].__file__)
        return set().union(*(self.lines.get((file, line), ()) for line in one.body))

    def off(self, one: Heuristic, kinds: str = "pto") -> Outcome | None:
        """Return the outcome without a heuristic; None where it cannot be switched off."""
        pages = [key for key in self.affected(one) if key[0] in kinds]
        before = self.switch.set(one)
        if before is None:
            return None
        try:
            results = {key: self.corpus.read(key) for key in pages}
        finally:
            self.switch.put(one, before)
        return Outcome(
            self.before.pages | {key[2:]: value for key, value in results.items() if key[0] == "p"},
            self.before.texts | {key[2:]: value for key, value in results.items() if key[0] == "t"},
            self.before.own | {key[2:]: value for key, value in results.items() if key[0] == "o"},
        )


def _outcome(results: dict[str, Any]) -> Outcome:
    parts: dict[str, dict[str, Any]] = {"p": {}, "t": {}, "o": {}}
    for key, value in results.items():
        parts[key[0]][key[2:]] = value
    return Outcome(parts["p"], parts["t"], parts["o"])


def row_of(ablation: Ablation, one: Heuristic) -> dict[str, Any] | None:
    """Return a row of the table."""
    before = ablation.before
    if (after := ablation.off(one)) is None:
        return None
    sites, others = before.sites(), after.sites()
    changed = [site for site in sites if sites[site] != others[site]]
    return {
        "name": one.name,
        "lines": one.lines,
        "read on": len({urlsplit(key[2:]).netloc for key in ablation.affected(one) if key[0] == "p"}),
        "sites": len(changed),
        "whole": after.whole() - before.whole(),
        "posts": sum(others[site][1] - sites[site][1] for site in sites),
        "authors": sum(others[site][2] - sites[site][2] for site in sites),
        "dates": sum(others[site][3] - sites[site][3] for site in sites),
        "F1": after.f1() - before.f1(),
        "texts": sum(abs(after.texts[key] - value) > 0.005 for key, value in before.texts.items()),
        "own": sum(after.own[key] != value for key, value in before.own.items()),
    }


_ablation: Ablation | None = None


def _row(one: int) -> dict[str, Any] | None:
    assert _ablation is not None
    return row_of(_ablation, _all[one])


_all: list[Heuristic] = []


def main() -> None:
    """Measure all heuristics and write the table."""
    global _ablation
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--own", type=Path)
    parser.add_argument("--least", type=int, default=3, help="lines of a heuristic that is measured")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=Path, help="write the rows as JSON lines here, too")
    chosen = parser.parse_args()
    _ablation = Ablation(Corpus(chosen.pages, chosen.texts, chosen.own))
    for module in _ablation.found:
        _all.extend(one for one in heuristics(module) if one.lines >= chosen.least)
    before = _ablation.before
    print(f"{len(_all)} heuristics, whole {before.whole()}, F1 {before.f1():.3f}", file=sys.stderr, flush=True)
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("fork").Pool(chosen.jobs) as pool:
        for row in pool.imap_unordered(_row, range(len(_all)), chunksize=2):
            if row is not None:
                rows.append(row)
                if chosen.rows:
                    with chosen.rows.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
    rows.sort(key=lambda row: (row["whole"], row["posts"] + row["authors"] + row["dates"], row["F1"], -row["own"]))
    RESULT.write_text(table(rows, before.whole(), len(before.sites()), before.f1()), "utf-8")


def table(rows: list[dict[str, Any]], whole: int, sites: int, mean: float) -> str:
    """Return the page with the table: what carries weight, then the names of what does not."""
    about = (__doc__ or "").partition("\n\n")[2].strip()
    head = f"# Heuristics of the reader\n\n{about}\n\nWith all of them: {whole} of {sites} sites whole, F1 {mean:.3f}.\n\n"
    heavy = [row for row in rows if row["sites"] or abs(row["F1"]) >= 0.0005]
    columns = ["name", "lines", "sites", "whole", "posts", "authors", "dates", "F1"]
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    lines += [
        f"| `{row['name']}` | {' | '.join(f'{row[name]:+.4f}' if name == 'F1' else str(row[name]) for name in columns[1:])} |"
        for row in heavy
    ]
    light = sorted(row["name"] for row in rows if row not in heavy)
    rest = f"\n## Without weight alone\n\n{len(light)} of {len(rows)}:\n\n" + "\n".join(f"- `{name}`" for name in light)
    decided = RESULT.read_text("utf-8").partition(DECIDED)[2]  # by hand, from the table
    return head + "\n".join(lines) + "\n" + rest + "\n\n" + DECIDED + decided


def _record(file: str) -> None:
    """Record each page that a test reads."""
    from forum_reader.readers import page_reader

    read = page_reader.read_page

    @functools.wraps(read)
    def recorded(html: str, url: str, *, now: datetime | None = None, **more: Any) -> Any:
        if not more and len(html) < 200_000:
            with Path(file).open("a", encoding="utf-8") as pages:
                pages.write(json.dumps([html, url, (now or NOW).isoformat()]) + "\n")
        return read(html, url, now=now, **more)

    page_reader.read_page = recorded


if file := os.environ.get("HEURISTICS_RECORD"):
    _record(file)
if __name__ == "__main__":
    main()
