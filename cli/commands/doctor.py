"""`trawl doctor`: what keeps a fleet from working, and what to do about each; `--repair` sets foreign values aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from cli.views.output import say_indented

if TYPE_CHECKING:
    from cli.access.checkup import Verdict

_MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def doctor(
    repair: Annotated[
        bool, typer.Option("--repair", help="Set foreign values in Trawl's Redis keys aside; nothing is deleted.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> int:
    """Check Redis, its data, the broker, clocks, the database, disks, permissions, ports and site files; say what to do.

    Without `--repair` the command is read-only. **bad**: something does not work, or is not safe (exit code 1). **note**:
    something works, but may fail later. `--repair` moves foreign values in Trawl's keys into `trawl:fleet:aside`, and renames
    keys of a wrong type to names below it.

    **Examples:**

        trawl doctor
        trawl doctor --repair
        trawl doctor --json | jq '.[] | select(.state == "bad")'
    """
    from cli.access import checkup, checkup_machine
    from cli.views.output import print_json

    found = [*checkup.of_redis(repair=repair), *_each(checkup_machine.CHECKS)]
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            say_indented(f"{_MARKS[one.state]}  {one.what:<12}  ", one.said)
            if one.fix:
                say_indented(" " * 20, one.fix)
    return 1 if any(one.state == "bad" for one in found) else 0


def _each(checks: Iterable[tuple[str, Callable[[], Iterable[Verdict]]]]) -> Iterable[Verdict]:
    """Run the checks; a check that fails becomes a finding and does not stop the others."""
    from cli.access.checkup import Verdict
    from redis_components.errors import TrawlError

    for what, check in checks:
        try:
            yield from check()
        except (TrawlError, OSError) as error:
            yield Verdict(what=what, state="bad", said=" ".join(str(error).split()))
