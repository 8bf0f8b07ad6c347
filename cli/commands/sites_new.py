"""`trawl sites new`: a site file from a forum's address."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import typer
from rich.text import Text

from cli.access import first_answer
from cli.names import visit_limits
from cli.views.output import complain, echo, print_json, working
from cli.views.tables import Columns, shortened, show
from forum_reader.definition import load
from forum_reader.definition.page_requests import is_this_machine
from forum_reader.draft.draft_file import Draft, Preview, name_of, text_of
from forum_reader.draft.draft_site import Drafted, drafted
from forum_reader.errors import AnotherHost
from forum_reader.recognise.recognise import Guess
from forums.sites import sites_dir
from forums.sites.http.fetch import Visitor
from forums.sites.http.politeness import USER_AGENT
from forums.sites.load import is_site_name
from forums.state.keys import TRIAL_PER_DAY
from redis_components.errors import ConfigError, TrawlError, check_choice
from redis_components.server.names import below

_SHOWN = 20  # forums in the table
_UNREAD = ".wrong"  # suffix of a file that looks wrong, in place of .toml


NO_CONTACT = (
    "Warning: the site sees a User-Agent without a contact, and gets {trial:,} requests a day until it does. Name an"
    " address at which its operator can reach you: --contact you@example.org, or User-Agent under [headers] in the file."
)
_CONTACT = re.compile(r"https?://[^\s\"\\()]{3,200}|[^\s\"\\()@]{1,64}@[^\s\"\\()@]{1,190}\.[^\s\"\\()@.]{2,63}")


def agent_with(contact: str | None) -> str:
    """Return the User-Agent with a contact for the site's operator: an e-mail address or a URL. None: the default one.

    Raises ConfigError for anything else.
    """
    if contact is None:
        return USER_AGENT
    if not (_CONTACT.fullmatch(contact) and contact.isascii()):
        raise ConfigError(
            f"--contact {contact!r:.100} is neither an e-mail address nor a URL: write you@example.org or https://…"
        )
    return f"trawl/0.1 (+{contact})"


def write(
    urls: Sequence[str],
    name: str | None,
    profile: str | None,
    *,
    force: bool,
    obey_robots: bool,
    allow_private: bool,
    as_json: bool,
    contact: str | None = None,
    hint: bool = True,
) -> int:
    """Read the pages at the first address that answers, write the file, print what was found, and with `hint` the next step."""
    url = urls[0]
    name = name or name_of(url)
    if not is_site_name(name):
        raise ConfigError(f"--name {name!r:.100}: {load.NAME_RULE}")
    path = below(sites_dir(), f"{name}.toml")
    if path.exists() and not force:
        raise ConfigError(f"{path} exists: choose another --name, or overwrite it with --force")
    if contact is None and not as_json and not is_this_machine(url):
        contact = _asked_contact(TRIAL_PER_DAY)
    agent = agent_with(contact) if contact is not None else None
    with working(f"reading pages of {url}", shown=not as_json):
        draft, guess, shown, problem = first_answer(
            urls, lambda one: _drafted(one, name, profile, obey_robots=obey_robots, allow_private=allow_private, agent=agent)
        )
    if problem is not None:
        complain(problem)
    if not draft.forums and profile is None:
        raise TrawlError(
            f"no forum was found at {url} ({draft.software}), so nothing is written: give the URL of a list of threads, or "
            "name a --profile (generic for unknown software) for a file to fill in"
        )
    if shown.wrong is not None and not force:
        path = path.with_suffix(_UNREAD)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(draft), "utf-8")
    if as_json:
        print_json(
            {
                "file": str(path),
                "profile": draft.profile or "generic",
                "marks": list(guess.marks) if guess else [],
                "base_url": draft.base_url,
                "forums": [forum.id for forum in draft.forums],
                "learned": draft.wrapper is not None,
                "missing": draft.wrapper.missing if draft.wrapper else [],
                "threads": msgspec.to_builtins(shown.threads),
                "problem": shown.problem or shown.wrong,
            }
        )
    else:
        _say(path, draft, guess)
        _show(shown)
        if hint or path.suffix == _UNREAD:
            echo(f"Next: trawl sites check {path if path.suffix == _UNREAD else draft.name} --live")
        if path.suffix == _UNREAD:
            echo(f"The fleet does not read {path.name}: correct it, and rename it to {draft.name}.toml")
    if agent is None and not is_this_machine(draft.base_url):
        echo(NO_CONTACT.format(trial=TRIAL_PER_DAY), stderr=True)
    return int(shown.wrong is not None)


def _asked_contact(trial: int) -> str | None:
    """Ask at the terminal for the contact of the site's operator; return None without a terminal or an answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    question = f"E-mail address or URL at which the site's operator reaches you (none: a trial, {trial:,} requests a day)"
    return typer.prompt(question, default="", show_default=False, err=True).strip() or None


async def _drafted(
    url: str, name: str, profile: str | None, *, obey_robots: bool, allow_private: bool, agent: str | None
) -> Drafted:

    if profile is not None:
        check_choice("--profile", profile, load.profile_names())
    limits = visit_limits(url)
    async with Visitor(obey_robots=obey_robots, allow_private=allow_private, agent=agent or USER_AGENT, limits=limits) as visitor:
        known = partial(Draft, name=name, obey_robots=obey_robots, allow_private=allow_private, agent=agent)
        try:
            return await drafted(url, visitor.get, known, profile)
        except AnotherHost as exc:
            raise TrawlError(f"{exc}: if that is the forum, trawl sites new {shlex.quote(exc.url)}") from exc


def _say(path: Path, draft: Draft, guess: Guess | None) -> None:

    marks = f", by {' and '.join(repr(mark) for mark in guess.marks[:3])}" if guess else ""
    echo(f"{path} written: {draft.software}{marks}")
    if draft.forums:
        show(draft.forums[:_SHOWN], {"  forum": lambda one: f"  {one.id}", "name": "name", "threads": "threads"}, False)
        if len(draft.forums) > _SHOWN:
            echo(f"  and {len(draft.forums) - _SHOWN} more")
    if draft.wrapper is not None:
        echo("No profile knows this software: how its pages are made was learned from them, and is in the file.")
        for key in draft.wrapper.missing:
            echo(f"  not found: {key}")
        if len(draft.forums) == 1 and not draft.can_discover:
            echo("One list is watched. Where the site has more boards, give the address of the page that lists them.")
    elif draft.profile is None:
        echo("No profile knows this software: open the file and follow its comments.")
    elif not draft.forums:
        echo("No forums were found: write their ids into `forums`.")


def _show(shown: Preview) -> None:
    """Print the threads, with the posts that the file finds on their first pages."""
    if problem := shown.problem or shown.wrong:
        echo(f"  wrong: {problem}")
    if not shown.threads:
        return
    columns: Columns = {
        "  thread": lambda one: "  " + shortened(one.title or one.id, 34),
        "posts": lambda one: f"{one.posts}{'+' if one.next else ''}",
        "first author": lambda one: shortened(one.author or "", 16),
        "first date": lambda one: f"{one.published:%Y-%m-%d %H:%M}" if one.published else "",
        "text": lambda one: shortened(one.text or "", 30),
        "remarks": lambda one: Text(
            one.problem or (f"some lack {', '.join(one.without)}" if one.without else ""), style="yellow"
        ),
    }
    show(shown.threads, columns, False)
