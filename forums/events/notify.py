"""Alarms about the fleet for outputs with `alarms = true`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis

from .alarms import Alarms, Step, Trouble, message, step
from .outputs.delivery import NotTaken
from .rules import NotifyOptions, Rules

logger = logging.getLogger(__name__)


def send_alarms(client: redis.Redis, rules: Rules, troubles: Sequence[Trouble]) -> dict[str, str]:
    """Send started and resolved alarms, one message to each output; return the outcome of each: `sent`, `quiet`, `quiet
    hours`, or an error.

    A failed message is tried again with the next call. Alarms in the quiet hours of an output are sent after them, if they
    still exist. Raises `redis.RedisError`.
    """
    from .outputs.messages import send

    alarms, outcomes = Alarms(client), {}
    for name, options in rules.outputs.items():
        if not isinstance(options, NotifyOptions) or not options.alarms:
            continue
        known, now = alarms.known(name), alarms.now()
        if options.quiet_for_s(now) is not None:
            outcomes[name] = "quiet hours"
            continue
        found: Step = step(known, troubles, now)
        outcomes[name] = "quiet"
        if found.started or found.over:
            try:
                send(name, options, *message(found))
                outcomes[name] = "sent"
            except NotTaken as error:
                logger.warning("output %s did not get %d alarms: %s", name, len(found.started) + len(found.over), error)
                outcomes[name] = str(error)
                continue
        if found.known != known:
            alarms.keep(name, found.known)
    return outcomes
