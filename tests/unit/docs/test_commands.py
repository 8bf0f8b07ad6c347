"""Every `trawl …` command that README.md, CONTRIBUTING.md and docs/*.md print exists, with its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import typer
from typer.exceptions import TyperException

from cli.command_table import in_present_words
from cli.main import program
from tests.support.documented_commands import NOT_RUN, all_commands, why_not_run

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "packaging/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
PAGES += sorted((ROOT / "docs/reference").glob("*.md"))
BLOCK_LINE = re.compile(r"^(?: {4,}|\$ )(?:[A-Z_]+=\S+ )*(?:docker compose exec \S+ )?(trawl .*)$")
FENCED_LINE = re.compile(r"^\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(trawl .*)$")
INLINE = re.compile(r"`(trawl [^`]+)`")
END_OF_COMMAND = {"|", ">", "<", "&", "&&", "||", ";", "#", ">>"}


def commands(page: Path) -> Iterator[tuple[int, str]]:
    """Line number and text of each command: in indented and fenced blocks, and in backticks within a line."""
    fenced = False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        block = (FENCED_LINE if fenced else BLOCK_LINE).match(line)
        if block:
            yield number, block[1]
        else:
            yield from ((number, text) for text in INLINE.findall(line))


def words_of(text: str) -> list[str]:
    """The words of the first command, without comments, pipes and redirections."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an apostrophe in prose
        words = text.split()
    end = next((place for place, word in enumerate(words) if word in END_OF_COMMAND), len(words))
    return [word.rstrip(",;") for word in words[1:end]]


def alternatives(words: list[str]) -> list[list[str]]:
    """`pause | drain | stop` in prose names three commands; END_OF_COMMAND has cut all but the first, `a|b` has not."""
    if words and "|" in words[0]:
        return [[name, *words[1:]] for name in words[0].split("|")]
    return [words]


@cache
def trawl() -> click.Command:
    """The commands of `trawl`; typer makes them from all signatures, which takes a tenth of a second."""
    return program()


def fault(words: list[str]) -> str | None:
    """Return the fault of a command line: a word of before, an unknown command or option; None where it exists."""
    command = trawl()
    words, warning = in_present_words(words)
    if warning:
        return warning
    for place, word in enumerate(words):
        if word.startswith("-"):
            name = word.partition("=")[0]
            known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}
            if name not in known:
                return f"{command.name} has no option {name}"
            continue
        subcommands = getattr(command, "commands", {})
        if word in subcommands:
            command = subcommands[word]
        elif (
            subcommands
            and not any(each.param_type_name == "argument" for each in command.params)
            and place_of_command(words, place)
        ):
            return f"there is no command {' '.join(words[: place + 1])}"
    return None


def place_of_command(words: list[str], place: int) -> bool:
    """Whether a command has to stand there: not behind an option, whose value it may be."""
    return place == 0 or not words[place - 1].startswith("-")


FOUND = [(page.relative_to(ROOT), line, text) for page in PAGES for line, text in commands(page)]


def test_commands_are_found() -> None:
    assert len(FOUND) > 150, "the patterns still find them"


def test_every_printed_command_exists() -> None:
    faults = [
        f"{page}:{line}: `{text}`: {wrong}"
        for page, line, text in FOUND
        for words in alternatives(words_of(text))
        if (wrong := fault(words))
    ]
    assert not faults, "\n".join(faults)


def refused(words: list[str]) -> str | None:
    """What the command's own parser says against the words, with their values: without running it. None where it takes them."""
    command, (words, _) = trawl(), in_present_words(words)
    parent = command.make_context("trawl", [], resilient_parsing=True)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    try:
        command.make_context("trawl", words, parent=parent)
    except TyperException as error:
        return error.format_message()
    except typer.Exit:
        return None
    return None


def test_the_parser_takes_every_command_of_a_block() -> None:
    """As it stands, with values: `trawl scale four` would have a known command and known options."""
    commands = [(one, words_of(one.text[one.text.index("trawl ") :])) for one in all_commands() if "trawl " in one.text]
    parsed = [(one, words) for one, words in commands if re.match(r"(\w+=\S+ )*trawl ", one.text)]
    assert len(parsed) > 120
    faults = [f"{one}: {said}" for one, words in parsed if (said := refused(words))]
    assert not faults, "\n".join(faults)


def test_each_reason_not_to_run_a_command_is_that_of_one() -> None:
    texts = [one.text for one in all_commands()]
    assert [pattern for pattern in NOT_RUN if not any(re.search(pattern, text) for text in texts)] == []
    assert sum(why_not_run(text) is None for text in texts) > 90, "most of them are run by make test-docs"


@pytest.mark.parametrize("text", ["trawl scale", "trawl dead --limit many", "trawl export likes", "trawl why"])
def test_the_parser_refuses_what_a_user_could_not_type(text: str) -> None:
    assert refused(words_of(text))


@pytest.mark.parametrize(
    "text",
    ["trawl sites check x --alive", "trawl site new x", "trawl job strat", "trawl export posts -q", "trawl db --since 3"],
)
def test_a_command_that_does_not_exist_is_a_fault(text: str) -> None:
    assert fault(words_of(text))


@pytest.mark.parametrize("text", ["trawl status --json", "trawl dead items replay books", "trawl logs -f # all"])
def test_a_command_that_exists_is_none(text: str) -> None:
    assert fault(words_of(text)) is None
