"""The keys of one spider's items."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ItemKeys:
    """The item stream, and the keys that begin with it. Part of `CrawlKeys`."""

    items: str
    item_groups: tuple[str, ...] = ()
    """Consumer groups of the item stream, which is a Redis stream then; none: it is a list."""

    def item_stream(self) -> str:
        """LIST, STREAM: scraped items as JSON, oldest first. Where a pipeline overrides `item_key`, its lists are written alike.
        With consumer groups (REDIS_ITEMS_GROUPS) a stream, each entry with the one field `item`.

        Written by `exchange.lua` and `items_replay.lua`. A user's consumer pops them; where the service declares the forum
        writer as its consumer, that alone reads them in place and trims them after the commit (`settle.lua`). Of a stream,
        entries that all groups have acknowledged are removed by `exchange.lua`, `settle_group.lua` and `items_tend.lua`.
        """
        return self.items

    def items_moving(self) -> str:
        """LIST: items of a list that becomes a stream, because groups were named: those that are not in the stream yet.

        Written and read by `exchange.lua` and `items_tend.lua` (`lib/item_stream.lua`).
        """
        return f"{self.items}:moving"

    def writer(self) -> str:
        """STRING with TTL: `<token>|<number of its last settled batch>` of the one writer that may trim the item stream.

        Written by `writer_lock.lua`, `writer_unlock.lua` and `settle.lua`, which checks it first.
        """
        return f"{self.items}:writer"

    def group_writer(self, group: str) -> str:
        """STRING with TTL: the same as the writer of a list, for the ready-made consumer of one group.

        Written by `writer_lock.lua`, `writer_unlock.lua` and `settle_group.lua`, which checks it first.
        """
        return f"{self.items}:writer:{group}"

    def item_part(self, group: str = "") -> str:
        """STRING: what the consumer of a list, or of a group, is about to write as one part (JSON: name, count, digest).

        Written by `part_note.lua`, read by the next consumer; removed by `settle.lua` and `settle_group.lua`.
        """
        return f"{self.items}:part:{group}" if group else f"{self.items}:part"

    def bad_items(self) -> str:
        """LIST: items that their consumer refused, newest last, as one line of JSON (`at`, epoch seconds of Redis, and `reason`)
        and the item; kept until replayed or purged. They count with those that wait towards REDIS_ITEMS_MAX_WAITING.

        Written by `settle.lua` and `settle_group.lua`; read by the inspector, `exchange.lua` and `trawl dead items`, which takes
        them out by `items_replay.lua` and `dead_purge.lua`.
        """
        return f"{self.items}:dead"
