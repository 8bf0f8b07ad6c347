"""Tasks that send notifications."""

from __future__ import annotations

from redis_components.connection import connect
from redis_components.errors import ConfigError

from .app import app


@app.task(name="trawl.notify_alarms")
def notify_alarms() -> dict[str, str]:
    """Send the problems of `trawl status` to the outputs with `alarms = true`; return the result of each."""
    from forums.events.rules import NotifyOptions, load

    rules = load()
    if rules is None or not any(isinstance(one, NotifyOptions) and one.alarms for one in rules.outputs.values()):
        return {}
    from forums.events.alarms import Trouble, send_alarms
    from forums.overview.problems import problems
    from forums.overview.reader import OverviewReader

    client = connect()
    return send_alarms(client, rules, [Trouble(one.what, one.fix) for one in problems(OverviewReader(client).read())])


@app.task(name="trawl.publish_events")
def publish_events() -> dict[str, str]:
    """Send the events of posts and comments to the outputs of the rules file (TRAWL_EVENTS_FILE); return the result of each.

    One at a time: a second one does nothing. Raises ConfigError where the file is wrong, and notes it for `trawl status`.
    """
    from forums.events.rules import load
    from forums.state.output_troubles import RULES_FILE, note_troubles

    client = connect()
    try:
        rules = load()
    except ConfigError as error:
        note_troubles(client, {RULES_FILE: str(error)}, handled=(), outputs=(RULES_FILE,))
        raise
    if rules is None or not rules.outputs:
        note_troubles(client, {}, handled=(), outputs=())
        return {}
    from forums.events.publish import publish
    from forums.storage.database import default_url
    from forums.writer.store import opened

    return {name: result.value for name, result in publish(opened(client, default_url()), client, rules).items()}


@app.task(name="trawl.sample_fleet")
def sample_fleet() -> None:
    """Keep the fleet's figures of this minute, for the charts of the page. Safe to run concurrently."""
    from forums.overview.reader import OverviewReader
    from forums.overview.samples import Samples, sample

    client = connect()
    Samples(client).add(sample(OverviewReader(client).read()))
