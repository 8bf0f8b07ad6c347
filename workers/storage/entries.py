"""Posts and comments in the database: what is stored under their keys is read, merged with the new states, and written back.

The caller's transaction keeps other writers out (`upsert.store`), so nothing changes between reading and writing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    Select,
    Table,
    Update,
    bindparam,
    case,
    delete,
    literal,
    literal_column,
    select,
    type_coerce,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.types import NullType

from .among import among, listed
from .bulk import execute_many, execute_tuples
from .contents import content_hash
from .merge import Entry, Revision, Text, add, first_entry, hash_of, missed
from .records import Comment, Post
from .tables import checks, posts, revisions
from .times import from_sqlite

Key = tuple[str, str]  # site, id
States = list[tuple[Post | Comment, str]]  # with the hashes of their texts

_MERGED = (
    "fetched_at",
    "first_seen_at",
    "changed_at",
    "deleted_at",
    "tombstone_at",
)  # columns that `merge` decides, beside the hash
_OF_CHECKS = {"checked_at", "next_check_at"}  # columns that `checks.py` writes
_KEY = ("site", "id")


def store_states(connection: Connection, table: Table[Any], items: Sequence[Post | Comment]) -> list[Key]:
    """Upsert posts into `posts`, or comments into `comments`, with their revisions; returns the keys that were not there."""
    by_key: dict[Key, States] = defaultdict(list)
    for item in items:
        by_key[item.site, item.id].append((item, hash_of(item)))
    for states in by_key.values():
        if len(states) > 1:
            states.sort(key=lambda state: state[0].fetched_at)  # of two of the same time the later arrival counts
    entries = _stored(connection, table, by_key)
    before = {key: _decided(entry) for key, entry in entries.items()}
    unseen = _last_misses(connection, table, items)
    for key, states in by_key.items():
        entry = entries.get(key)
        rest: Iterable[tuple[Post | Comment, str]] = states
        if entry is None:
            entry = entries[key] = first_entry(*states[0])
            rest = states[1:]
        for item, digest in rest:
            add(entry, item, digest)
        if unseen:
            missed(entry, unseen.get(_thread(states[-1][0])))
    _write(connection, table, entries, before)
    return [key for key in entries if key not in before]


def _thread(item: Post | Comment) -> Key:
    return item.site, item.id if isinstance(item, Post) else item.post_id


def _decided(entry: Entry) -> tuple[object, ...]:
    return entry.hash, entry.first_seen_at, entry.changed_at, entry.deleted_at, entry.tombstone_at


# --- reading

# How the driver's times become ours, without SQLAlchemy's way for each of them.
_MOMENT: dict[str, Callable[[Any], Any]] = {
    "sqlite": from_sqlite,
    "postgresql": lambda at: None if at is None else at.astimezone(UTC),
}


def _stored(connection: Connection, table: Table[Any], by_key: Mapping[Key, States]) -> dict[Key, Entry]:
    dialect = connection.dialect.name
    entries: dict[Key, Entry] = {}
    for site, ids in _by_site(by_key).items():
        edited, unhashed = [], []
        found = connection.execute(_select_entries(table, dialect), {"site": site, "among": listed(ids, dialect)}).all()
        for id_, digest, *times in found:
            fetched_at, first_seen_at, changed_at, deleted_at, tombstone_at = map(_MOMENT[dialect], times)
            entries[site, id_] = Entry(
                hash=digest or "",
                fetched_at=fetched_at,
                first_seen_at=first_seen_at,
                changed_at=changed_at,
                deleted_at=deleted_at,
                tombstone_at=tombstone_at,
            )
            if digest is None:
                unhashed.append(id_)
            states = by_key[site, id_]
            if states[0][1] != digest or (len(states) > 1 and any(state[1] != digest for state in states)):
                edited.append(id_)
        if edited:
            _read_texts(connection, table, site, edited, entries, set(unhashed))
    return entries


def _read_texts(
    connection: Connection, table: Table[Any], site: str, ids: list[str], entries: dict[Key, Entry], unhashed: set[str]
) -> None:
    """The texts that may become revisions, and the revisions that there are."""
    dialect = connection.dialect.name
    wanted = {"site": site, "among": listed(ids, dialect)}
    for id_, title, body, body_html, author, edited_at in connection.execute(_select_texts(table, dialect), wanted):
        entry = entries[site, id_]
        entry.text = Text(title=title, body=body, body_html=body_html, author=author, edited_at=edited_at)
        if id_ in unhashed:  # an older Trawl wrote it
            entry.hash = content_hash(title, body)
    for id_, digest, first, last in connection.execute(_select_revisions(dialect), {"kind": _kind(table), **wanted}):
        entries[site, id_].revisions[digest] = Revision(first=first, last=last, text=None)


def _last_misses(connection: Connection, table: Table[Any], items: Sequence[Post | Comment]) -> dict[Key, datetime]:
    """When the threads of `items` were last read without showing what was not there."""
    dialect = connection.dialect.name
    column = checks.c.gone_at if table is posts else checks.c.whole_at
    return {
        (site, thread): at
        for site, threads in _by_site({_thread(item) for item in items}).items()
        for thread, at in connection.execute(_select_misses(column, dialect), {"site": site, "among": listed(threads, dialect)})
    }


def _by_site(keys: Iterable[Key]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for site, id_ in keys:
        found[site].append(id_)
    return found


def _kind(table: Table[Any]) -> str:
    return "post" if table is posts else "comment"


@cache
def _select_entries(table: Table[Any], dialect: str) -> Select[*tuple[Any, ...]]:
    plain: list[ColumnElement[Any]] = [type_coerce(table.c[name], NullType) for name in _MERGED]  # see _MOMENT
    return select(table.c.id, table.c.content_hash, *plain).where(table.c.site == bindparam("site"), among(table.c.id, dialect))


@cache
def _select_texts(table: Table[Any], dialect: str) -> Select[*tuple[Any, ...]]:
    title = table.c.title if table is posts else literal(None)
    columns = [table.c[name] for name in ("body", "body_html", "author", "edited_at")]
    return select(table.c.id, title, *columns).where(table.c.site == bindparam("site"), among(table.c.id, dialect))


@cache
def _select_revisions(dialect: str) -> Select[*tuple[Any, ...]]:
    columns = [revisions.c[name] for name in ("id", "content_hash", "first_fetched_at", "last_fetched_at")]
    mine = (revisions.c.site == bindparam("site"), revisions.c.kind == bindparam("kind"))
    return select(*columns).where(*mine, among(revisions.c.id, dialect))


@cache
def _select_misses(column: Any, dialect: str) -> Select[*tuple[Any, ...]]:
    return select(checks.c.post_id, column).where(
        checks.c.site == bindparam("site"), among(checks.c.post_id, dialect), column.is_not(None)
    )


# --- writing


def _write(
    connection: Connection, table: Table[Any], entries: Mapping[Key, Entry], before: Mapping[Key, tuple[object, ...]]
) -> None:
    dialect = connection.dialect.name
    decided = (("forum_id",) if table is posts else ()) + _MERGED
    of_item, of_entry = attrgetter(*_fields(table)), attrgetter(*decided, "hash")
    whole, parts = [], []
    for key in sorted(entries):  # rows that others may lock too are taken in one order
        entry = entries[key]
        if entry.item is not None:
            whole.append(of_item(entry.item) + of_entry(entry))
        elif _decided(entry) != before.get(key):
            parts.append(
                {"of_site": key[0], "of_id": key[1], "content_hash": entry.hash}
                | {name: getattr(entry, name) for name in _MERGED}
            )
    if whole:
        execute_tuples(connection, _upsert(table, dialect), (*_fields(table), *decided, "content_hash"), whole)
    if parts:
        execute_many(connection, _update_parts(table), parts)
    _write_revisions(connection, _kind(table), entries)


@cache
def _fields(table: Table[Any]) -> list[str]:
    """Columns that are taken as the item has them."""
    own = set((Post if table is posts else Comment).__struct_fields__) - {"forum_id", *_MERGED}
    return [column.name for column in table.columns if column.name in own]


@cache
def _upsert(table: Table[Any], dialect: str) -> Insert:
    insert = postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
    written = [column.name for column in table.columns if column.name not in _OF_CHECKS]
    insert = insert.values({name: bindparam(name) for name in written})
    changed: dict[str, Any] = {name: insert.excluded[name] for name in written if name not in _KEY}
    if table is posts:
        not_said = insert.excluded.forum_id == literal_column("''")
        changed["forum_id"] = case((not_said, posts.c.forum_id), else_=insert.excluded.forum_id)
    return insert.on_conflict_do_update(index_elements=list(table.primary_key.columns), set_=changed)


@cache
def _update_parts(table: Table[Any]) -> Update:
    changed: dict[str, Any] = {name: bindparam(name) for name in ("content_hash", *_MERGED)}
    return update(table).where(table.c.site == bindparam("of_site"), table.c.id == bindparam("of_id")).values(changed)


def _write_revisions(connection: Connection, kind: str, entries: Mapping[Key, Entry]) -> None:
    kept, earlier, dropped = [], [], []
    for (site, id_), entry in entries.items():
        for digest in entry.touched:
            revision = entry.revisions.get(digest)
            if revision is None:
                dropped.append({"of_site": site, "of_kind": kind, "of_id": id_, "of_hash": digest})
            elif revision.text is None:
                earlier.append(
                    {"of_site": site, "of_kind": kind, "of_id": id_, "of_hash": digest, "first_fetched_at": revision.first}
                )
            else:
                kept.append(_revision_row(site, kind, id_, digest, revision, revision.text))
    if dropped:
        execute_many(connection, _DELETE_REVISION, dropped)
    if earlier:
        execute_many(connection, _UPDATE_REVISION, earlier)
    if kept:
        execute_many(connection, _upsert_revisions(connection.dialect.name), kept)


def _revision_row(site: str, kind: str, id_: str, digest: str, revision: Revision, text: Text) -> dict[str, Any]:
    return {
        "site": site,
        "kind": kind,
        "id": id_,
        "content_hash": digest,
        "title": text.title,
        "body": text.body,
        "body_html": text.body_html,
        "author": text.author,
        "edited_at": text.edited_at,
        "first_fetched_at": revision.first,
        "last_fetched_at": revision.last,
    }


@cache
def _upsert_revisions(dialect: str) -> Insert:
    insert = postgresql.insert(revisions) if dialect == "postgresql" else sqlite.insert(revisions)
    keys = list(revisions.primary_key.columns)
    changed = {column.name: insert.excluded[column.name] for column in revisions.columns if not column.primary_key}
    return insert.on_conflict_do_update(index_elements=keys, set_=changed)


_THAT_REVISION = (
    revisions.c.site == bindparam("of_site"),
    revisions.c.kind == bindparam("of_kind"),
    revisions.c.id == bindparam("of_id"),
    revisions.c.content_hash == bindparam("of_hash"),
)
_DELETE_REVISION = delete(revisions).where(*_THAT_REVISION)
_UPDATE_REVISION = update(revisions).where(*_THAT_REVISION).values(first_fetched_at=bindparam("first_fetched_at"))
