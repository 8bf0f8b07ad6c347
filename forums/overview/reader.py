"""Reads the sites of the forum crawl from Redis, for the overview of the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import redis

from forums.records import FORUM_WRITER
from forums.state.database_identity import DatabaseClaim
from forums.state.forum_states import FORUM_LIST, Ledger, Spent, Watched, watched
from forums.state.site_faults import drifted, output_troubles, wrong_files
from forums.state.writer_figures import PublicationDelays, WriterCounts, WriterFigures
from redis_components.keys import CrawlKeys
from workers.consumers.item_consumers import streams_of
from workers.fleet.holds import why_not_seeded
from workers.overview.reader import Reading, SitesReader

from .boards import Boards
from .model import ForumSites


class ForumSitesReader(SitesReader):
    """Reader of the forum crawl's sites; the list service, which feeds the other, is shown first."""

    first = FORUM_LIST
    parts = (
        *SitesReader.parts,
        *("database", "outputs", "drift", "site files", "boards", "requests", "budgets", "delays", "writer"),
    )

    def read(self, reading: Reading, site: str | None = None) -> ForumSites:
        """Read the sites, or one of them; what belongs to a whole fleet only where its crawls were read."""
        client, now, part = self._client, reading.now, reading.part
        boards = part("boards", partial(watched, client, site)) or Watched.of(())
        sites = sorted(boards.by_site)
        spent = part("requests", lambda: Ledger(client).spent(sites, now)) or {}
        budgets = part("budgets", lambda: Ledger(client).budgets(sites)) or {}
        wrong = part("site files", lambda: wrong_files(client)) or {}
        held = part("pauses", lambda: why_not_seeded(client, FORUM_LIST, sites)) or {}
        claim, writer = DatabaseClaim(client), streams_of(FORUM_WRITER, reading.records, reading.names)
        base = self.base(reading, sites)
        return ForumSites(
            breakers=base.breakers,
            lanes=base.lanes,
            drifts=part("drift", partial(drifted, client)) or {},
            wrong_files=wrong,
            boards=Boards(boards, now, held=held, wrong=wrong, over=_over(budgets, spent)),
            spent=spent,
            budgets=budgets,
            delays=part("delays", PublicationDelays(client).read) or {},
            writer=part("writer", WriterCounts(client).read) or WriterFigures(),
            writer_lag_s=part("writer", lambda: writer_lag(client, writer.values(), now)) if writer else None,
            output_troubles=part("outputs", lambda: output_troubles(client)) or {},
            another_database=part("database", claim.is_another) or False,
            refused_database=part("database", claim.refused),
        )


class _Stamp(msgspec.Struct):
    """Time of the fetch of an item: a post, comment or forum; or a scan or check."""

    fetched_at: datetime | None = None
    finished_at: datetime | None = None


_decoder = msgspec.json.Decoder(_Stamp)


def writer_lag(client: redis.Redis, streams: Iterable[CrawlKeys], now: float) -> float:
    """Return the seconds from the fetch of the oldest waiting item until `now` (epoch s, Redis); 0.0 if none waits.

    Unreadable items have no age: the writer refuses them. Raises `redis.RedisError`.
    """
    with client.pipeline(transaction=False) as pipe:
        for keys in streams:
            pipe.lindex(keys.item_stream(), 0)
        heads: list[Any] = pipe.execute()
    return max((now - at for at in map(_fetched_at, filter(None, heads)) if 0 < at < now), default=0.0)


def _fetched_at(payload: bytes | str) -> float:
    try:
        stamp = _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 0.0
    moment = stamp.fetched_at or stamp.finished_at
    return moment.timestamp() if moment and moment.tzinfo else 0.0


def _over(budgets: Mapping[str, float], spent: Mapping[str, Spent]) -> dict[str, str]:
    """Return the sites whose hourly budget is spent, with the figures."""
    return {
        site: spent[site].compared(budget) for site, budget in budgets.items() if site in spent and spent[site].total >= budget
    }
