"""`trawl notify`: trying messages to people, and sending alarms now."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.access.redis import NOTHING, redis_client, running_url
from cli.commands.events import check_output, rules_file
from cli.views.output import say
from forums.events.messages import Trouble, send, send_alarms
from forums.events.outputs import NotTaken
from forums.events.rules import NotifyOptions
from forums.overview.problems import problems
from forums.overview.reader import OverviewReader
from redis_components.errors import ConfigError

app = typer.Typer(no_args_is_help=True, help="Messages to people: a test, and alarms without a running fleet.")


@app.command("test")
def send_test(
    output: Annotated[str | None, typer.Argument(metavar="OUTPUT", help="Only this output.", show_default=False)] = None,
) -> int:
    """Send a test message to the outputs of the kind notify. Ends with 1 where one was not taken."""
    rules = rules_file()
    if output is not None:
        check_output(output, rules)
    chosen = {name: one for name, one in rules.outputs.items() if isinstance(one, NotifyOptions) and output in (None, name)}
    if not chosen:
        raise ConfigError('the rules file has no such output of the kind notify: add one with kind = "notify" (docs/events.md)')
    failed = 0
    for name, options in chosen.items():
        try:
            send(name, options, "Trawl: test", "This is a test message of Trawl. Nothing is wrong.")
            say(f"{name}: sent")
        except NotTaken as error:
            say(f"{name}: {error}")
            failed += 1
    return int(failed > 0)


@app.command("alarms")
def alarms() -> int:
    """Send what `trawl status` shows now to the outputs with `alarms = true`, as the fleet does every 30 s.

    For cron on another machine: a fleet that is dead cannot say so itself. Ends with 1 where something needs attention.
    """
    rules = rules_file()
    if (url := running_url()) is None:
        say(NOTHING)
        return 1
    with redis_client(url) as client:
        troubles = [Trouble(one.what, one.fix) for one in problems(OverviewReader(client).read())]
        for name, outcome in send_alarms(client, rules, troubles).items():
            say(f"{name}: {outcome}")
    return int(bool(troubles))
