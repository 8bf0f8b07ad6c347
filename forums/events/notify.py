"""Tells outputs with `alarms = true` what is wrong with the fleet."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis

from .alarms import Alarms, Step, Trouble, message, step
from .outputs.delivery import NotTaken
from .rules import NotifyOptions, Rules

logger = logging.getLogger(__name__)


def tell_alarms(client: redis.Redis, rules: Rules, troubles: Sequence[Trouble]) -> dict[str, str]:
    """Send what is new and what is over, one message to each output; returns what became of each: `told`, `quiet`, `quiet hours`,
    or why not.

    What an output did not take is tried again with the next call, and what it must not have in its quiet hours is told after
    them, if it is still so. Raises `redis.RedisError`.
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
        if found.tell or found.over:
            try:
                send(name, options, *message(found))
                outcomes[name] = "told"
            except NotTaken as error:
                logger.warning("output %s was not told of %d alarms: %s", name, len(found.tell) + len(found.over), error)
                outcomes[name] = str(error)
                continue
        if found.known != known:
            alarms.keep(name, found.known)
    return outcomes
