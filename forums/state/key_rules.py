"""Rules for the forum crawl's keys in Redis, by which `workers.state.quarantine` finds values that Trawl did not write."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import redis

from redis_components.keys import CrawlKeys
from redis_components.server.untrusted_values import as_text, decoded
from workers.application import Check, KeyRules
from workers.state.quarantine import HASH, MOST_FIELDS, STRING

from .alerts import alert_of
from .forum_states import budget_of, due_of, spent_of, state_of
from .keys import ForumCrawlKeys, ForumFleetKeys
from .thread_records import record_of
from .writer_state import delay_of, figure_of


def key_rules(client: redis.Redis, crawls: Sequence[CrawlKeys], *, threads: bool) -> KeyRules:
    """Return the types and checks; with `threads` also those of the records of threads. Raises redis.RedisError."""
    fleet = ForumFleetKeys()
    checks: dict[str, Check] = {
        fleet.budgets(): budget_of,
        fleet.drift(): lambda _, raw: decoded(raw, dict),
        fleet.delays(): delay_of,
        fleet.writer_figures(): figure_of,
        fleet.alerts(): alert_of,
    }
    others = [fleet.database(), fleet.wrong_sites(), fleet.output_troubles()]
    for keys in crawls:
        forums = ForumCrawlKeys(keys)
        checks |= {forums.forum_states(): state_of, forums.forum_dues(): due_of}
        others.append(forums.marks())
    types = {**dict.fromkeys((*checks, *others), HASH), fleet.probing(): STRING}
    if as_text(client.type(fleet.budgets())) == "hash":
        checks |= {fleet.spent(as_text(site)): spent_of for site in islice(client.hkeys(fleet.budgets()), MOST_FIELDS)}
    if threads:
        checks |= {keys.threads(): record_of for keys in crawls}
    return KeyRules(types, checks)
