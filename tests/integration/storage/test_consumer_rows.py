"""Items of any spider as rows, on a server of each kind."""

from __future__ import annotations

import random
from contextlib import closing

from sqlalchemy import make_url

from fleet_operations.consumers.consume import Item
from fleet_operations.consumers.database_rows import DatabaseRows


def test_a_key_that_no_index_holds_is_refused_and_its_neighbours_are_stored(database_url: str) -> None:
    long = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=9_000))  # cannot be compressed
    urls = ["a", long, "b"]
    with closing(DatabaseRows(database_url, "books", "url")) as sink:
        refused = sink.write([Item(place, {"url": url}) for place, url in enumerate(urls)])
    assert set(refused) == (set() if make_url(database_url).get_backend_name() == "sqlite" else {1})
