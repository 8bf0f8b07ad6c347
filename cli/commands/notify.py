"""`trawl notify`: send a test message, or alarms without a running fleet."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.access.redis import redis_client, report_nothing_runs, running_url
from cli.commands.events import check_output, rules_file
from cli.views.output import echo
from forums.events.messages import Trouble, send, send_alarms
from forums.events.outputs import NotTaken
from forums.events.rules import NotifyOptions
from redis_components.errors import ConfigError
from workers.overview.problems import problems
from workers.overview.reader import OverviewReader

app = typer.Typer(no_args_is_help=True, help="Messages to people: a test, and alarms without a running fleet.")


@app.command("test")
def send_test(
    output: Annotated[str | None, typer.Argument(metavar="OUTPUT", help="Only this output.", show_default=False)] = None,
) -> int:
    """Send a test message to the outputs of the kind notify. Exit code 1: one was not taken."""
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
            echo(f"{name}: sent")
        except NotTaken as error:
            echo(f"{name}: {error}")
            failed += 1
    return int(failed > 0)


@app.command("alarms")
def alarms() -> int:
    """Send what `trawl status` shows now to the outputs with `alarms = true`, as the fleet does every 30 s.

    For cron on another machine: a dead fleet cannot report its own death. Exit code 1: something needs attention.
    """
    rules = rules_file()
    if (url := running_url()) is None:
        report_nothing_runs()
        return 1
    with redis_client(url) as client:
        troubles = [Trouble(one.what, one.fix) for one in problems(OverviewReader(client).read())]
        for name, outcome in send_alarms(client, rules, troubles).items():
            echo(f"{name}: {outcome}")
    return int(bool(troubles))
