"""The index of words of posts and comments: SQLite's FTS5, PostgreSQL's tsvector; MySQL and MariaDB have none, and are searched
row by row. And the time by which they are sorted, that of their publication, with its index; and the numbers of stored threads by
board and month.

Words are cut here, so that both find the same: runs of letters and digits, and for scripts that write no spaces each pair of
neighbours. Site and author are words, too, so that a search of one author reads that author's rows alone. The tables are outside
of `tables.py`: each kind of database has its own.

A row without a date counts as published when it was first seen; so does one with a date after that, which is wrong: a clock of
the site, or a zone. The index of times is outside of `tables.py`, since MariaDB has none of an expression: there it is one of a
generated column, in MySQL, too.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    cast,
    column,
    delete,
    func,
    inspect,
    literal_column,
    select,
    table,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from forums.storage.engine import UtcDateTime

from .dialects import Table
from .tables import board_months, comments, posts

ROWS, WORDS = "search_rows", "search_words"
MOST_CHARACTERS = 100_000
"""Of a text: PostgreSQL holds 1 MiB of words for a row."""
_LONGEST, _MOST_PARTS = 40, 3
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"([{_NO_SPACES}]+)|[^\W_{_NO_SPACES}]+")
_ASCII_RUN = re.compile(r"[a-z0-9]+")
_PART = re.compile(r"(?<=\d)(?=[^\W\d])|(?<=[^\W\d])(?=\d)")  # `rtx5090` is found by `5090`, too
_AT_ONCE = 1000

Row = tuple[str, str, str, str | None]
"""Site and id, the text with its title, and the author."""


def create(connection: Connection) -> None:
    """Make the empty index; nothing where the database has none."""
    for statement in _CREATE.get(connection.dialect.name, ()):
        connection.exec_driver_sql(statement)


_DROP = (f"DROP TABLE IF EXISTS {WORDS}", f"DROP TABLE IF EXISTS {ROWS}")
_KEY = "kind TEXT NOT NULL, site TEXT NOT NULL, id TEXT NOT NULL"
_CREATE = {
    "sqlite": (
        *_DROP,
        f"CREATE TABLE {ROWS} (doc INTEGER PRIMARY KEY AUTOINCREMENT, {_KEY})",
        # Each key is a word, too: an index of the keys would cost more. Without the texts: an edited row gets a new number,
        # and the old number leads nowhere.
        f"CREATE VIRTUAL TABLE {WORDS} USING fts5(words, content='', detail='none', tokenize='ascii')",
    ),
    "postgresql": (
        *_DROP,
        f"CREATE TABLE {ROWS} (doc BIGSERIAL PRIMARY KEY, {_KEY}, words TSVECTOR NOT NULL, UNIQUE (kind, site, id))",
        f"CREATE INDEX ix_{ROWS}_words ON {ROWS} USING gin (words)",
    ),
}


def fill(connection: Connection) -> None:
    """Index all stored rows."""
    for kind, (stored, query) in _STORED.items():
        key, after = (stored.c.site, stored.c.id), ("", "")
        while rows := connection.execute(query.where(tuple_(*key) > after).order_by(*key).limit(_AT_ONCE)).all():
            index(connection, kind, list(map(_row, rows)))
            after = tuple(rows[-1][:2])


def _row(row: Any) -> Row:
    site, id_, *said, author = row
    return site, id_, "\n".join(said), author


_STORED: dict[str, tuple[Table[Any], Select[*tuple[Any, ...]]]] = {
    "post": (posts, select(posts.c.site, posts.c.id, posts.c.title, posts.c.body, posts.c.author)),
    "comment": (comments, select(comments.c.site, comments.c.id, comments.c.body, comments.c.author)),
}


def forget(connection: Connection, site: str) -> None:
    """Forget the rows of a site.

    In SQLite the words of forgotten rows stay, and lead nowhere, until they are more than those of the others.
    """
    if connection.dialect.name not in _CREATE:
        return
    rows = table(ROWS, column("site"))
    gone = connection.execute(delete(rows).where(rows.c.site == site)).rowcount
    left = connection.execute(select(func.count()).select_from(rows)).scalar() or 0
    if connection.dialect.name == "sqlite" and gone > left:
        create(connection)
        fill(connection)


def index(connection: Connection, kind: str, rows: Sequence[Row], changed: Iterable[tuple[str, str]] = ()) -> None:
    """Index rows; `changed` are the keys of those that were indexed before."""
    dialect = connection.dialect.name
    if dialect not in _CREATE or not rows:
        return
    words = [[*terms(said), *marks(site, author)] for site, _, said, author in rows]
    if dialect == "postgresql":
        connection.exec_driver_sql(_INSERT_VECTOR, [(kind, *row[:2], found) for row, found in zip(rows, words, strict=True)])
        return
    for words_of_key in {_key_word(kind, *key) for key in changed}:
        connection.exec_driver_sql(_FORGET, (words_of_key,))
    first = 1 + (connection.exec_driver_sql(_LAST).scalar() or 0)  # the transaction excludes other writers
    connection.exec_driver_sql(_INSERT_ROW, [(doc, kind, *row[:2]) for doc, row in enumerate(rows, first)])
    whole = [" ".join((*found, _key_word(kind, *row[:2]))) for row, found in zip(rows, words, strict=True)]
    connection.exec_driver_sql(_INSERT_WORDS, list(enumerate(whole, first)))


_INSERT_VECTOR = (
    f"INSERT INTO {ROWS} (kind, site, id, words) VALUES (%s, %s, %s, array_to_tsvector(%s::text[]))"  # noqa: S608 - names are ours
    " ON CONFLICT (kind, site, id) DO UPDATE SET words = excluded.words"
)
_LAST = f"SELECT seq FROM sqlite_sequence WHERE name = '{ROWS}'"  # noqa: S608
_INSERT_ROW = f"INSERT INTO {ROWS} (doc, kind, site, id) VALUES (?, ?, ?, ?)"  # noqa: S608
_FORGET = f"DELETE FROM {ROWS} WHERE doc IN (SELECT rowid FROM {WORDS} WHERE {WORDS} MATCH ?)"  # noqa: S608
_INSERT_WORDS = f"INSERT INTO {WORDS} (rowid, words) VALUES (?, ?)"  # noqa: S608


def terms(said: str) -> set[str]:
    """Return the words of a text, as they are indexed."""
    said = said[:MOST_CHARACTERS]
    if said.isascii():  # much faster
        found = {run[:_LONGEST] for run in _ASCII_RUN.findall(said.lower())}
    else:
        found = set[str]()
        for run in _RUN.finditer(unicodedata.normalize("NFKC", said).casefold()[:MOST_CHARACTERS]):
            if run[1]:
                found.update(map("".join, pairwise(run[1])))
                found.add(run[1][-1])  # the others begin a pair
            else:
                found.add(run[0][:_LONGEST])
    for mixed in [one for one in found if not (one.isalpha() or one.isdigit())]:
        found.update(mixed[part.end() :] for part, _ in zip(_PART.finditer(mixed), range(_MOST_PARTS), strict=False))
    return {f"w{one}" for one in found}


def _key_word(kind: str, site: str, id_: str) -> str:
    """Return the word that stands for a row, by which SQLite finds its former number."""
    return "k" + blake2b(f"{kind} {site} {id_}".encode("utf-8", "replace"), digest_size=10).hexdigest()


@lru_cache(maxsize=10_000)
def marks(site: str | None, author: str | None) -> tuple[str, ...]:
    """Return the words that stand for a site and an author."""
    named = [(sign, name.casefold()) for sign, name in (("s", site), ("a", author)) if name]
    return tuple(sign + blake2b(name.encode("utf-8", "replace"), digest_size=10).hexdigest() for sign, name in named)


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """Words to look up."""

    whole: frozenset[str]
    begins: frozenset[str]
    exact: tuple[str, ...]
    """Words that the index finds only nearly: their rows are read, too."""

    def query(self, dialect: str) -> str:
        """Return the query in the language of the database; terms have letters and digits only."""
        if dialect == "postgresql":
            return " & ".join([*(f"'{one}'" for one in sorted(self.whole)), *(f"'{one}':*" for one in sorted(self.begins))])
        return " AND ".join([*(f'"{one}"' for one in sorted(self.whole)), *(f'"{one}"*' for one in sorted(self.begins))])


def lookup(words: Iterable[str], site: str | None, author: str | None) -> Lookup:
    """Return the look-up of rows with all words, each of which begins a word of the text; `*word` is found anywhere in it."""
    whole, begins, exact = set(marks(site, author)), set[str](), list[str]()
    for word in words:
        if word.startswith("*") and len(word) > 1:
            exact.append(word[1:])
            continue
        folded = unicodedata.normalize("NFKC", word).casefold()
        runs = list(_RUN.finditer(folded))
        for run in runs:
            found = run[0]
            if run[1] and len(found) > 1:
                whole |= {f"w{one}{other}" for one, other in pairwise(found)}
            elif run is runs[-1] or run[1]:
                begins.add(f"w{found[:_LONGEST]}")
            else:
                whole.add(f"w{found[:_LONGEST]}")
        is_plain = len(runs) == 1 and len(runs[0][0]) == len(folded) <= (2 if runs[0][1] else _LONGEST)
        if not is_plain:
            exact.append(word)
    return Lookup(whole=frozenset(whole), begins=frozenset(begins), exact=tuple(exact))


def rows_of(connection: Connection, wanted: Lookup, most: int) -> Select[tuple[str, str, str]] | None:
    """Return the query of kind, site and id of the rows that were indexed last; None where only reading every row finds them."""
    dialect = connection.dialect.name
    if dialect not in _CREATE or not (wanted.whole or wanted.begins):
        return None
    doc: ColumnElement[int] = column("doc", BigInteger)
    rows = table(ROWS, column("doc", BigInteger), column("kind"), column("site"), column("id"), column("words"))
    query = select(rows.c.kind, rows.c.site, rows.c.id)
    if dialect == "postgresql":
        return query.where(rows.c.words.op("@@")(cast(wanted.query(dialect), TSQUERY))).order_by(rows.c.doc.desc()).limit(most)
    words = table(WORDS, column("rowid", BigInteger))
    doc = words.c.rowid
    matches: ColumnElement[bool] = literal_column(WORDS).op("MATCH")(wanted.query(dialect))
    return query.select_from(words.join(rows, rows.c.doc == doc)).where(matches).order_by(doc.desc()).limit(most)


_COLUMN = "published_at"
_EXPRESSION = "CASE WHEN created_at < first_seen_at THEN created_at ELSE first_seen_at END"
_INDEXES = {
    "ix_posts_published": (posts.name, ""),
    "ix_posts_site_published": (posts.name, "site, "),
    "ix_comments_published": (comments.name, ""),
}


def published(table: Any, dialect: str) -> ColumnElement[datetime]:
    """Return the time of publication of the rows of `posts` or `comments`."""
    if dialect == "mysql":
        return literal_column(f"{table.name}.{_COLUMN}", UtcDateTime)
    c = table.c
    return case((c.created_at < c.first_seen_at, c.created_at), else_=c.first_seen_at)


def create_indexes_of_times(connection: Connection) -> None:
    """Make the indexes, unless they are there."""
    expression, there = f"({_EXPRESSION})", inspect(connection)
    if connection.dialect.name == "mysql":  # commits each statement: a former upgrade may have died here
        expression = _COLUMN
        for table in (posts.name, comments.name):
            if _COLUMN not in {one["name"] for one in there.get_columns(table)}:
                connection.exec_driver_sql(
                    f"ALTER TABLE {table} ADD COLUMN {_COLUMN} DATETIME(6) GENERATED ALWAYS AS ({_EXPRESSION}) VIRTUAL"
                )
    known = (
        {one["name"] for table in (posts.name, comments.name) for one in there.get_indexes(table)}
        if expression == _COLUMN
        else ()
    )
    for name, (table, before) in _INDEXES.items():
        if name not in known:
            connection.exec_driver_sql(f"CREATE INDEX {name} ON {table} ({before}{expression})")
    if connection.dialect.name == "postgresql":  # else it estimates the expression by a constant until a tenth has changed
        connection.exec_driver_sql(f"ANALYZE {posts.name}, {comments.name}")


BoardMonth = tuple[str, str, str]  # site, board, month


def board_month(site: str, board: str, created_at: Any, first_seen_at: Any) -> BoardMonth:
    """Return the place where a thread counts. Times are of the driver: SQLite's are text."""
    at = created_at or first_seen_at
    if isinstance(at, datetime):
        at = at.astimezone(UTC) if at.tzinfo else at
        return site, board, f"{at.year:04}-{at.month:02}"
    return site, board, at[:7]


def add_threads(connection: Connection, numbers: Mapping[BoardMonth, int]) -> None:
    """Add numbers of threads. The transaction excludes other writers."""
    for (site, board, month), number in sorted(numbers.items()):
        values = {"of_site": site, "of_board": board, "of_month": month, "more": number}
        if number and not connection.execute(_ADD, values).rowcount:
            connection.execute(board_months.insert().values(site=site, forum_id=board, month=month, threads=number))


_C = board_months.c
_ADD = (
    update(board_months)
    .where(_C.site == bindparam("of_site"), _C.forum_id == bindparam("of_board"), _C.month == bindparam("of_month"))
    .values(threads=_C.threads + bindparam("more"))
)


def count_threads(connection: Connection) -> None:
    """Count all stored threads."""
    rows = connection.execute(select(posts.c.site, posts.c.forum_id, posts.c.created_at, posts.c.first_seen_at))
    numbers = Counter(board_month(*row) for row in rows)
    connection.execute(delete(board_months))
    add_threads(connection, numbers)
