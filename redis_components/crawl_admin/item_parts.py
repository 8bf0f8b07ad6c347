"""The part that a consumer is about to write, noted in Redis until its items leave the item stream."""

from __future__ import annotations

import msgspec

from redis_components.server.scripts import script

from .item_group import ItemGroup
from .item_stream import ItemStream


class PartNote(msgspec.Struct, frozen=True, kw_only=True):
    """The part that was begun: the first `count` items that wait, by their digest."""

    name: str
    count: int
    digest: str


class ItemParts:
    """The note of one item stream, or of one group. Methods raise `redis.RedisError` when Redis does not answer."""

    def __init__(self, stream: ItemStream | ItemGroup) -> None:
        self._stream = stream

    def noted(self) -> PartNote | None:
        """Return the part that was begun and not settled; None where there is none, or none that can be read."""
        raw = self._stream.client.get(self._stream.part_key)
        try:
            return msgspec.json.decode(raw or b"", type=PartNote)
        except msgspec.DecodeError:
            return None

    def note(self, token: str, note: PartNote) -> bool:
        """Note the next part; False where the consumer's lock `token` is lost. `settle` removes it."""
        keys = {"writer": self._stream.writer_key, "part": self._stream.part_key}
        return bool(script("part_note")(self._stream.client, keys, {"token": token, "note": msgspec.json.encode(note)}))
