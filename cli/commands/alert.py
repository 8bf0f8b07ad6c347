"""`trawl alert`: messages about posts with a word, made while the fleet runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.access import redis_client
from cli.views.options import AsJson, OnlySite
from cli.views.output import complain, echo, report
from cli.views.tables import show
from forums.events.alerts import PREFIX, add, examples
from forums.state.alerts import Alert, Alerts, shown_address
from forums.state.site_faults import output_troubles
from redis_components.errors import ConfigError
from redis_components.server.untrusted_values import server_time
from workers.fleet.holds import who
from workers.state.nodes import Nodes


def alert(
    match: Annotated[
        str | None, typer.Argument(metavar="WORDS", help="A word, or a filter as in docs/events.md: `gpu or /rtx ?50/`.")
    ] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="ADDRESS", help=f"{examples()}.")] = None,
    site: OnlySite = None,
    digest_minutes: Annotated[int, typer.Option(metavar="N", help="Minutes that a post waits for others, for one message.")] = 0,
    quiet: Annotated[
        str, typer.Option(metavar="HOURS", help='Send nothing in these, as "22:00-07:00 Europe/Berlin" (else UTC).')
    ] = "",
    history: Annotated[
        bool, typer.Option("--history", help="Also posts written before now, which a first reading of a board stores.")
    ] = False,
    remove: Annotated[int | None, typer.Option(metavar="NUMBER", help="Remove this alert.")] = None,
    as_json: AsJson = False,
) -> int:
    """Send a message about each new or changed post that matches. Without arguments: show the alerts.

    Posts written before the alert is made are left out, unless with `--history`; one without a date counts as new. A test
    message is sent at once. The running fleet sends the others within seconds of storing a post; nothing is restarted.
    `mailto:` uses the mail server of this machine, or that of `mailto:you@example.org?smtp=HOST:PORT`; with a login it is
    `mailto://user:password@example.org?to=you@example.org`. Requests to `https://` are signed, with a secret that is shown once.

    **Examples:**

        trawl alert "rtx 5090" --to ntfy://my-topic
        trawl alert "显卡 and not author:spambot" --site demo --to mailto:you@example.org
        trawl alert "/gpu/" --to https://example.org/hook --json
        trawl alert --remove 1
    """
    if (match is None) != (to is None) or (remove is not None and match is not None):
        raise ConfigError("write what to look for and a receiver, `trawl alert WORDS --to ADDRESS`, or `--remove NUMBER` alone")
    if remove is not None:
        with redis_client() as client:
            Alerts(client).remove(remove)
        echo(f"alert {remove} is removed")
        return 0
    if match is None or to is None:
        return _show(as_json)
    given = Alert(
        match=match, to=to, site=site or "", digest_minutes=digest_minutes, quiet_hours=quiet, history=history, by=who()
    )
    with redis_client() as client:
        now = server_time(client)
        runs = any(node.alive(now) for node in Nodes(client).all())
        number, made = add(client, given)
    address, secret = shown_address(to), made.secret if to.startswith("http") else None
    lines = [f"alert {number}: a test message was sent to {address}; posts with {match!r} follow as they are stored"]
    lines += [f"its requests are signed (Standard Webhooks) with {secret}, which is not shown again"] if secret else []
    report(as_json, {"alert": number, "match": match, "site": site, "to": address, "secret": secret}, *lines)
    if not (runs or as_json):
        complain("no fleet runs here, so nothing is stored or sent: `trawl watch ADDRESS` or `trawl up` starts it")
    return 0


def _show(as_json: bool) -> int:
    with redis_client() as client:
        found, troubles = Alerts(client).all(), output_troubles(client)
    rows = [
        {
            "alert": int(number),
            "match": one.match,
            "site": one.site or None,
            "to": shown_address(one.to),
            "history": one.history,
            "made_at": one.made_at,
            "by": one.by,
            "error": troubles.get(f"{PREFIX}{number}"),
        }
        for number, one in found.items()
    ]
    columns: dict[str, Any] = {"alert": "alert", "match": "match", "site": lambda row: row["site"] or "all", "to": "to"}
    empty = "there is no alert; `trawl alert WORDS --to ADDRESS` makes one"
    show(rows, columns | {"state": lambda row: row["error"] or "ok"}, as_json, empty=empty)
    return int(any(row["error"] for row in rows))
