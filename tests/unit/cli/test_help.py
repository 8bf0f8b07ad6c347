"""The program itself: version, completion, help in groups, and Ctrl-C while it is loaded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import start
from cli.command_table import COMMANDS, GROUPS, RENAMED, in_present_words, short_help
from cli.main import main, program
from redis_components import __version__

SHORT_HELP = short_help([]) or ""


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"trawl {__version__}\n"


def command_of(words: list[str]) -> Any:
    """Return the command of these words; None where there is none."""
    command: Any = program()
    for word in words:
        command = getattr(command, "commands", {}).get(word)
    return command


def test_the_top_has_at_most_45_words_each_in_a_group_of_the_help() -> None:
    commands = program().commands
    assert len(commands) <= 45
    assert {name: command.rich_help_panel for name, command in commands.items()} == {
        name: panel for name, (panel, _, _) in COMMANDS.items()
    }


def test_the_short_help_fits_a_terminal_and_names_what_exists() -> None:
    lines = SHORT_HELP.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    shown = [line[10:].split()[1:] for line in lines if line[10:].startswith("trawl ")]
    assert len(shown) >= 12
    for words in shown:
        command = command_of([word for word in words if re.fullmatch("[a-z]+", word)][:1])
        assert command is not None, words
        subcommand = (
            words[1] if len(words) > 1 and hasattr(command, "commands") and words[1].isalpha() and words[1].islower() else None
        )
        assert subcommand is None or subcommand in command.commands or words[0] == "dead", words


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_without_a_subcommand_does_its_first(name: str) -> None:
    assert set(command_of(name.split()).commands) == set(GROUPS[name])
    assert in_present_words([*name.split(), "--json"])[0] == [*name.split(), GROUPS[name][0], "--json"]
    assert in_present_words([*name.split(), "--help"])[0] == [*name.split(), "--help"]


@pytest.mark.parametrize("old", [*RENAMED, "backup x"])
def test_a_word_of_before_is_read_with_one_warning(old: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, warning = in_present_words([*old.split(), "--help"])
    new = RENAMED.get(old, "backup create x").split()
    assert words[:-1] == new
    assert command_of([word for word in new if word != "x"]) is not None
    assert f"`trawl {' '.join(new).removesuffix(' x')}`" in warning
    assert main([*old.split(), "--help"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == [f"trawl: {warning}"]
    assert f"Usage: trawl {' '.join(new).removesuffix(' x')}" in said.out
    assert in_present_words(new)[1] == ""


@pytest.mark.processes
def test_the_short_help_needs_no_typer() -> None:
    code = """
import sys
sys.argv = ["trawl", "--help"]
from cli.start import main
code = main()
print(code, sorted({"typer", "rich", "redis_components"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{SHORT_HELP}0 []\n"


@pytest.mark.processes
@pytest.mark.parametrize("given", [["help", "all"], ["statis"]])
def test_the_list_of_commands_and_a_wrong_word_import_no_command(given: list[str]) -> None:
    code = f"""
import sys
from cli.main import main
main({given})
print([name for name in sys.modules if name.startswith("cli.commands.") or name == "redis"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "status" in done.stdout + done.stderr, "a list, or a suggestion"


def test_help_is_a_word_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scale", "--help"]) == 0
    asked = capsys.readouterr().out
    assert "Usage: trawl scale [OPTIONS] SERVICE=N..." in asked
    assert main(["help", "scale"]) == 0
    assert capsys.readouterr().out == asked
    assert main(["help", "all"]) == 0
    assert "Usage: trawl [OPTIONS] COMMAND" in capsys.readouterr().out
    assert (main(["help"]), main(["-h"]), main([])) == (0, 0, 2)
    assert capsys.readouterr().out == 3 * SHORT_HELP


@pytest.mark.processes
def test_a_command_imports_nothing_heavy_of_another(tmp_path: Path) -> None:
    code = """
import sys
from cli.main import main
main(["status"])
heavy = {"pydantic", "sqlalchemy", "celery", "scrapy", "redis", "rich"}
print(sorted(heavy & set(sys.modules)))
import cli.commands.seed_urls, cli.commands.scale
import forums.overview
print(sorted((heavy - {"redis", "rich"} | {"forums.sites", "cli.commands.seed"}) & set(sys.modules)))
import forums.sites
print("scrapy" in sys.modules)
"""
    nothing_runs = {**os.environ, "TRAWL_DATA_DIR": str(tmp_path)}  # an older test's server may not have ended yet
    done = subprocess.run([sys.executable, "-c", code], env=nothing_runs, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-3:] == ["[]", "[]", "False"]


@pytest.mark.processes
def test_reading_pages_imports_nothing_of_a_fleet() -> None:
    code = "import sys; from cli.main import main; main(['read', '--batch']); print({'redis', 'scrapy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.processes
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands(shell: str) -> None:
    begun = "trawl sc"
    asked = {"_TRAWL_COMPLETE": f"complete_{shell}", "COMP_WORDS": begun, "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": begun}
    asked["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    done = subprocess.run(
        [sys.executable, "-m", "cli.main"], env={**os.environ, **asked}, capture_output=True, text=True, timeout=60, check=False
    )
    assert list(dict.fromkeys(re.findall(r"\b(scale|schedule)\b", done.stdout))) == ["schedule", "scale"], done


@pytest.mark.processes
def test_no_color_turns_colours_off() -> None:
    environment = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "help", "all"], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", done.stdout)


@pytest.mark.processes
@pytest.mark.parametrize(("program", "loaded"), [("cli.start", "typer"), ("demo.__main__", "redis")])
def test_ctrl_c_while_it_is_loaded_is_no_traceback(program: str, loaded: str) -> None:
    code = f"""
import builtins, os, signal, sys
sys.argv = ["trawl", "status"]
load = builtins.__import__
def slow(name, *rest):
    if name == "{loaded}":
        os.kill(os.getpid(), signal.SIGINT)
    return load(name, *rest)
builtins.__import__ = slow
from {program} import main
raise SystemExit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.processes
def test_ctrl_c_is_not_lost_in_the_callback_of_an_import() -> None:
    code = """
import os, signal, sys, time
from cli.start import interrupt
signal.signal(signal.SIGINT, interrupt)
signal.signal(signal.SIGALRM, interrupt)
def trace(frame, event, _):
    if frame.f_code.co_name == "cb":
        sys.settrace(None)
        print("in the callback")
        os.kill(os.getpid(), signal.SIGINT)
sys.settrace(trace)
try:
    import wave
    time.sleep(50)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("in the callback\ninterrupted\n", "")


def test_ctrl_c_while_an_error_is_told_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(error: Exception) -> int:
        raise KeyboardInterrupt from error

    monkeypatch.setattr("cli.main._complain", interrupted)
    monkeypatch.setattr(sys, "argv", ["trawl", "no-such-command"])
    before = signal.getsignal(signal.SIGINT)
    try:
        assert start.main() == 130
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("where", "code", "said"),
    [
        (
            ">/dev/full",
            1,
            "trawl: No space left on device: the output is not complete; make room, and repeat the command\n",
        ),
        ("<&- >&-", 0, ""),
    ],
)
def test_an_output_that_takes_nothing_is_no_internal_error(where: str, code: int, said: str) -> None:
    program = f"exec {sys.executable} -c 'from cli.start import main; raise SystemExit(main())' --version {where}"
    done = subprocess.run(["bash", "-c", program], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, said)


def test_a_home_folder_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", "/sys")  # where nobody makes a folder, root neither
    monkeypatch.setattr("typer._completion_shared._get_shell_name", lambda: "bash")  # no shell need be above this process
    assert main(["--install-completion"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("trawl: /sys/.")
    assert "internal error" not in said
