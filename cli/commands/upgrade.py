"""`trawl upgrade --check`: what will happen to a running fleet when its processes are replaced by this Trawl."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cli.views.output import say_indented
from redis_components.errors import ConfigError

_MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def upgrade(
    check: Annotated[bool, typer.Option("--check", help="Say what will happen; nothing is changed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Say what this version of Trawl will do to the running fleet and its data; run it before the fleet does.

    It compares the layout of the keys in Redis, the version of the database's tables and the versions of the nodes with this
    Trawl. **note**: something will happen. **bad**: this Trawl cannot work there (exit code 1).

    **Examples:**

        trawl upgrade --check
        trawl upgrade --check --json | jq '.[] | select(.state != "ok")'
    """
    from cli.access.upgrading import findings
    from cli.views.output import print_json

    if not check:
        raise ConfigError(
            "trawl upgrade only says what will happen: add --check; trawl db upgrade changes the tables, trawl roll the crawlers"
        )
    found = list(findings())
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            say_indented(f"{_MARKS[one.state]}  {one.what:<12}  ", one.said)
            if one.fix:
                say_indented(" " * 20, one.fix)
    return 1 if any(one.state == "bad" for one in found) else 0
