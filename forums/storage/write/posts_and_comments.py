"""Upsert of posts and comments: reads the stored rows, merges the new states, and writes the changed columns; and of forums, as
index pages list them.

The caller's transaction excludes other writers (`upsert.store`), so nothing changes between reading and writing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache, lru_cache
from hashlib import sha256
from itertools import compress
from operator import attrgetter, itemgetter, ne
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    Table,
    Update,
    bindparam,
    delete,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.types import NullType

from forums.records.stored import Comment, Forum, Post
from forums.storage.engine import from_mysql, from_sqlite, keyed, rows_by_key
from forums.storage.schema import search_index
from forums.storage.schema.dialects import converted, execute_converted, execute_many, upsert
from forums.storage.schema.search_index import BoardMonth, add_threads, board_month
from forums.storage.schema.tables import checks, comments, forums, posts, revisions

from .changes import (
    NO_TEXT,
    Change,
    ChangeKind,
    MergedEntry,
    Revision,
    State,
    Text,
    add,
    kinds_of,
    missed,
)

Key = tuple[str, str]  # site, id
_NOWHERE = ("", "", "")
States = list[tuple[Post | Comment, str]]  # with the hashes of their texts
Stored = dict[Key, tuple[Any, ...]]  # rows with the columns of a `_Layout`, in the driver's types

_TEXT = ("body", "body_html", "author", "edited_at", "title")  # columns of a revision; comments have no title
_INDEXED = ("title", "body", "author")  # for the search
_OF_LISTS = ("author", "created_at", "reply_count", "last_reply_at")
_OF_THREADS = ("position",)  # of a comment: missing on the page of the newest messages
_MERGED = ("version", "fetched_at", "first_seen_at", "changed_at", "deleted_at", "tombstone_at")  # computed by `merge`


def store_states(connection: Connection, table: Table[Any], items: Sequence[Post | Comment], changes: list[Change]) -> list[Key]:
    """Upsert posts into `posts`, or comments into `comments`, with their revisions; return the keys of the new rows.

    Their changes are added to `changes`, in the order of arrival.
    """
    by_key: dict[Key, States] = {}
    for item in items:
        by_key.setdefault((item.site, item.id), []).append((item, _hash_of(item)))
    stored = _stored(connection, table, by_key)
    entries = {key: _entry(_layout(table), row, by_key[key], connection.dialect.name) for key, row in stored.items()}
    _read_revisions(connection, _kind(table), entries)
    of_thread = _layout(table).of_thread
    misses = rows_by_key(connection, _SELECT_MISSES[table.name], set(map(of_thread, items)))
    unseen = {(site, thread): at for site, (thread, at) in misses}
    for key, states in by_key.items():
        if len(states) > 1:
            states.sort(key=lambda state: state[0].fetched_at)  # of two with the same time the later arrival wins
        entry = entries.get(key)
        rest: Iterable[tuple[Post | Comment, str]] = states
        if entry is None:
            entry = entries[key] = _first_entry(*states[0])
            rest = states[1:]
        for item, digest in rest:
            add(entry, item, digest)
        if unseen:
            missed(entry, unseen.get(of_thread(states[-1][0])))
    changes += _changes(table, by_key, entries, stored)
    _write(connection, table, entries, stored)
    _write_revisions(connection, _kind(table), entries)
    return [key for key in entries if key not in stored]


def content_hash(title: str | None, body: str) -> str:
    """Return the first 128 bits of SHA-256 over the title (if any), a separator and the text, as 32 hexadecimal digits."""
    return sha256(f"{title}\x1f{body}".encode() if title is not None else body.encode()).hexdigest()[:32]


def _hash_of(item: Post | Comment) -> str:
    return content_hash(item.title, item.body) if isinstance(item, Post) else content_hash(None, item.body)


def _first_entry(item: Post | Comment, digest: str) -> MergedEntry:
    """Return the row of an item that is not stored yet."""
    at = item.fetched_at
    entry = MergedEntry(
        hash=digest, fetched_at=at, first_seen_at=at, changed_at=at, deleted_at=None, tombstone_at=None, item=item
    )
    if item.deleted:
        entry.hash, entry.changed_at, entry.deleted_at, entry.tombstone_at = NO_TEXT, None, at, at
    if isinstance(item, Post):
        entry.forum_id = item.forum_id or ""
    return entry


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """Order of the columns in which rows are read, compared and written, and their getters from items and entries."""

    shown: tuple[str, ...]  # fields of the item; the first two are the key
    decided: tuple[str, ...]  # computed by `merge`, the hash at the end
    of_item: Callable[[Any], tuple[Any, ...]]
    of_entry: Callable[[Any], tuple[Any, ...]]
    of_thread: Callable[[Any], Key]  # of an item
    of_lists: tuple[int, ...]  # indexes of columns that other pages fill, too: where an item has None, the stored value stays
    of_text: Callable[[Any], tuple[Any, ...]]  # of a row: text, HTML, author, time of the edit, of a post the title too
    indexed: tuple[int, ...]  # indexes of the columns that the search finds, the author last

    def counted(self, row: tuple[Any, ...]) -> BoardMonth:
        """Return the board and month of a post's row; of comments one for all, which is not stored."""
        if "forum_id" not in self.decided:
            return _NOWHERE
        first_seen_at = row[self.names.index("first_seen_at")]
        return board_month(row[0], row[len(self.shown)], row[self.shown.index("created_at")], first_seen_at)

    @property
    def names(self) -> tuple[str, ...]:
        return self.shown + self.decided


@cache
def _layout(table: Table[Any]) -> _Layout:
    own = set((Post if table is posts else Comment).__struct_fields__) - {"forum_id", *_MERGED}
    shown = tuple(column.name for column in table.columns if column.name in own)
    decided = (("forum_id",) if table is posts else ()) + _MERGED
    return _Layout(
        shown=shown,
        decided=(*decided, "content_hash"),
        of_item=attrgetter(*shown),
        of_entry=attrgetter(*decided, "hash"),
        of_thread=attrgetter("site", "id" if table is posts else "post_id"),
        of_lists=tuple(shown.index(name) for name in (_OF_LISTS if table is posts else _OF_THREADS)),
        of_text=itemgetter(
            *[shown.index(name) for name in ("body", "body_html", "author", "edited_at", "title") if name in shown]
        ),
        indexed=tuple(shown.index(name) for name in _INDEXED if name in shown),
    )


def _kind(table: Table[Any]) -> str:
    return "post" if table is posts else "comment"


# --- reading

# Converters of the driver's times, instead of SQLAlchemy's slower processing.
_MOMENT: dict[str, Callable[[Any], Any]] = {
    "sqlite": from_sqlite,
    "mysql": from_mysql,
    "postgresql": lambda at: None if at is None else at.astimezone(UTC),
}


def _stored(connection: Connection, table: Table[Any], keys: Iterable[Key]) -> Stored:
    rows = (tuple(row) for _, row in rows_by_key(connection, _select_rows(table), keys))
    return {row[:2]: row for row in rows}


def _entry(layout: _Layout, row: tuple[Any, ...], states: States, dialect: str) -> MergedEntry:
    """Return the entry of a stored row; with its text if one of `states` has another text."""
    moment = _MOMENT[dialect]
    digest = row[-1]
    fetched_at, first_seen_at, changed_at, deleted_at, tombstone_at = map(moment, row[-6:-1])
    entry = MergedEntry(
        hash=digest,
        version=row[-7],
        fetched_at=fetched_at,
        first_seen_at=first_seen_at,
        changed_at=changed_at,
        deleted_at=deleted_at,
        tombstone_at=tombstone_at,
    )
    if len(layout.decided) > len(_MERGED) + 1:
        entry.forum_id = row[len(layout.shown)]
    if states[0][1] != digest or (len(states) > 1 and any(state[1] != digest for state in states)):
        body, body_html, author, edited_at, *title = layout.of_text(row)
        entry.text = Text(
            title=title[0] if title else None, body=body, body_html=body_html, author=author, edited_at=moment(edited_at)
        )
        if digest is None:  # an older Trawl wrote it
            entry.hash = content_hash(entry.text.title, body)
    return entry


def _read_revisions(connection: Connection, kind: str, entries: Mapping[Key, MergedEntry]) -> None:
    """Add the stored revisions to the entries that may get another text now."""
    wanted = (key for key, entry in entries.items() if entry.text)
    for site, (id_, digest, first, last) in rows_by_key(connection, _SELECT_REVISIONS, wanted, kind=kind):
        entries[site, id_].revisions[digest] = Revision(first=first, last=last, text=None)


@cache
def _select_rows(table: Table[Any]) -> Select[*tuple[Any, ...]]:
    plain: list[ColumnElement[Any]] = [type_coerce(table.c[name], NullType) for name in _layout(table).names]  # see _MOMENT
    return select(*plain).where(keyed(table.c.id))


_SELECT_REVISIONS = select(*[revisions.c[name] for name in ("id", "content_hash", "first_fetched_at", "last_fetched_at")]).where(
    keyed(revisions.c.id), revisions.c.kind == bindparam("kind")
)
_SELECT_MISSES = {  # the last reading of each thread that showed missing rows to be removed
    table.name: select(checks.c.post_id, at).where(keyed(checks.c.post_id), at.is_not(None))
    for table, at in ((posts, checks.c.gone_at), (comments, checks.c.whole_at))
}


# --- changes


def _changes(table: Table[Any], by_key: Mapping[Key, States], entries: Mapping[Key, MergedEntry], stored: Stored) -> list[Change]:
    """Return the changes of the rows, and set `version` of their entries."""
    layout, kind, found = _layout(table), _kind(table), []
    of_forum = len(layout.shown) if table is posts else None
    of_thread, new = layout.of_thread, ChangeKind.NEW.value
    for key, states in by_key.items():
        entry, row = entries[key], stored.get(key)
        if row is None and entry.deleted_at is None:  # nearly all of a fresh batch
            entry.version = 1
            found.append(Change(kind, key[0], key[1], of_thread(states[-1][0])[1], 1, new, entry.hash, entry.forum_id))
            continue
        removed, before = entry.deleted_at is not None, None
        if row is not None:
            same = row[-1] == entry.hash and (row[-3] is not None) == removed
            if same and (of_forum is None or row[of_forum] == entry.forum_id):
                continue
            before = _state(layout, row, entry)
        happened = kinds_of(
            before,
            State(entry.hash, removed, entry.forum_id),
            kept=before is not None and before.hash in entry.revisions,
        )
        for what in happened:
            entry.version += 1
            thread = of_thread(states[-1][0])[1]
            found.append(Change(kind, *key, thread, entry.version, what.value, entry.hash, entry.forum_id))
    return found


def _state(layout: _Layout, row: tuple[Any, ...], entry: MergedEntry) -> State:
    """Return the state of a stored row; its hash is computed if an older Trawl wrote the row."""
    digest = row[-1]
    if digest is None:
        digest = content_hash(entry.text.title, entry.text.body) if entry.text else entry.hash
    return State(digest, row[-3] is not None, row[len(layout.shown)] if "forum_id" in layout.decided else "")


# --- writing


def _write(connection: Connection, table: Table[Any], entries: Mapping[Key, MergedEntry], stored: Stored) -> None:
    dialect = connection.dialect.name
    layout, whole, at_once = _layout(table), _upsert(table, dialect), dialect == "mysql"
    keys = sorted(entries)  # one order for all writers, against deadlocks
    decided = converted(connection, whole, layout.decided, [layout.of_entry(entries[key]) for key in keys])
    items = [layout.of_item(item) for key in keys if (item := entries[key].item) is not None]
    shown = iter(converted(connection, whole, layout.shown, items))
    new: list[tuple[Any, ...]] = []
    other_words: list[tuple[Any, ...]] = []
    threads = Counter[BoardMonth]()
    changes: dict[tuple[bool, ...], list[tuple[Any, ...]]] = defaultdict(list)  # by the set of changed columns
    for key, of_entry in zip(keys, decided, strict=True):
        before = stored.get(key, ())
        row = (next(shown) if entries[key].item is not None else before[: len(layout.shown)]) + of_entry
        if before:
            row = _keeping(layout, row, before)
            differs = tuple(map(ne, row, before))
            changes[differs].append(row if at_once else (*key, *compress(row, differs)))
            if any(differs[place] for place in layout.indexed):
                other_words.append(row)
            if (old := layout.counted(before)) != (now := layout.counted(row)):
                threads.update({now: 1, old: -1})
        else:
            new.append(row)
    if new:
        execute_converted(connection, whole, layout.names, new)
        threads.update(map(layout.counted, new))
    for differs, rows in changes.items():
        if not any(differs):
            continue
        names = tuple(compress(layout.names, differs))
        if at_once:  # the driver sends inserts together, and updates one by one
            execute_converted(connection, _upsert(table, dialect, names), layout.names, rows)
        else:
            execute_converted(connection, _update(table, names), ("of_site", "of_id", *names), rows)
    *texts, author = layout.indexed
    found = [(*row[:2], "\n".join(row[place] for place in texts), row[author]) for row in (*new, *other_words)]
    search_index.index(connection, _kind(table), found, changed=[row[:2] for row in other_words])
    if table is posts:
        add_threads(connection, threads)


def _keeping(layout: _Layout, row: tuple[Any, ...], before: tuple[Any, ...]) -> tuple[Any, ...]:
    """Fill columns that the page does not show with the stored values, which came from a list page."""
    missing = [place for place in layout.of_lists if row[place] is None and before[place] is not None]
    if not missing:
        return row
    return tuple(before[place] if place in missing else value for place, value in enumerate(row))


@lru_cache(maxsize=300)
def _upsert(table: Table[Any], dialect: str, changed: tuple[str, ...] | None = None) -> Insert:
    return upsert(table, dialect, _layout(table).names, changed)


@lru_cache(maxsize=300)
def _update(table: Table[Any], names: tuple[str, ...]) -> Update:
    that = table.c.site == bindparam("of_site"), table.c.id == bindparam("of_id")
    return update(table).where(*that).values({name: bindparam(name) for name in names})


def _write_revisions(connection: Connection, kind: str, entries: Mapping[Key, MergedEntry]) -> None:
    kept, earlier, dropped = [], [], []
    for (site, id_), entry in entries.items():
        for digest in entry.touched:
            key = site, kind, id_, digest
            revision = entry.revisions.get(digest)
            if revision is None:
                dropped.append(key)
            elif revision.text is None:
                earlier.append((*key, revision.first))
            else:
                kept.append((*key, *_OF_TEXT(revision.text), revision.first, revision.last))
    if dropped:
        execute_many(connection, _DELETE_REVISION, _THAT_REVISION, dropped)
    if earlier:
        execute_many(connection, _UPDATE_REVISION, (*_THAT_REVISION, "first_fetched_at"), earlier)
    if kept:
        execute_many(connection, _upsert_revisions(connection.dialect.name), _REVISION, kept)


@cache
def _upsert_revisions(dialect: str) -> Insert:
    return upsert(revisions, dialect, _REVISION)


_OF_TEXT = attrgetter(*_TEXT)
_REVISION = ("site", "kind", "id", "content_hash", *_TEXT, "first_fetched_at", "last_fetched_at")
_THAT_REVISION = ("of_site", "of_kind", "of_id", "of_hash")
_IS_THAT = [
    revisions.c[name] == bindparam(of) for name, of in zip(("site", "kind", "id", "content_hash"), _THAT_REVISION, strict=True)
]
_DELETE_REVISION = delete(revisions).where(*_IS_THAT)
_UPDATE_REVISION = update(revisions).where(*_IS_THAT).values(first_fetched_at=bindparam("first_fetched_at"))


# --- forums


def store_forums(connection: Connection, items: Sequence[Forum]) -> None:
    """Update rows made by `store_mentions` with values of index pages; the newest page wins."""
    rows = [
        {"of_site": item.site, "of_id": item.id}
        | {name: getattr(item, name) for name in ("name", "url", "parent_id", "threads", "fetched_at")}
        for item in items
    ]
    connection.execute(_UPDATE_FORUM, rows)


_UPDATE_FORUM: Update = (
    update(forums)
    .where(
        forums.c.site == bindparam("of_site"),
        forums.c.id == bindparam("of_id"),
        or_(forums.c.fetched_at.is_(None), forums.c.fetched_at <= bindparam("fetched_at")),
    )
    .values({name: bindparam(name) for name in ("name", "url", "parent_id", "threads", "fetched_at")})
)
