"""Redelivery of events that an output refused."""

from __future__ import annotations

import redis

from forums.storage.event_reader import EventLog

from .cursors import Cursors
from .expression import JudgingTime
from .publish import output_of
from .rules import Rules


def redeliver(name: str, rules: Rules, client: redis.Redis, cursors: Cursors, log: EventLog) -> tuple[int, int]:
    """Deliver the events that output `name` refused, one at a time; return how many it accepted, and how many are left.

    Events that are not kept any more are dropped from the list. Raises NotTaken if the output accepts nothing now.
    """
    refused = [position for position, _, _ in cursors.refused(name)]
    events = {event.at: event for event in log.at(refused)}
    output = output_of(name, rules, client, log.end())
    taken = left = 0
    for position in refused:
        event = events.get(position)
        if event is not None:
            if output.deliver(rules.judged(rules.outputs[name], [event], JudgingTime())[1] or [event]).refused:
                left += 1
                continue
            taken += 1
        cursors.forget(name, [position])
    return taken, left
