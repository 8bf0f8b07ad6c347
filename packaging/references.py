"""References of docs/reference/ that are made from the code: `python packaging/references.py` (`make docs`)."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, HttpUrl, SecretStr
from pydantic.fields import FieldInfo
from sqlalchemy import BigInteger, Boolean, Column, Integer, Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from forum_reader.definition.fields import FieldSpec, Select  # noqa: E402 - found by the path above
from forum_reader.definition.site import Site  # noqa: E402
from forums.events.outputs import OutputOptions  # noqa: E402
from forums.events.rules import kinds  # noqa: E402
from forums.state.keys import ForumCrawlKeys, ForumFleetKeys  # noqa: E402
from forums.storage.database import VERSION  # noqa: E402
from forums.storage.engine import UtcDateTime  # noqa: E402
from forums.storage.schema.tables import metadata  # noqa: E402
from redis_components.keys import CrawlKeys  # noqa: E402
from redis_components.keys.crawl import ItemKeys, NamespaceKeys, StartTaskKeys  # noqa: E402
from redis_components.keys.frontier import FedTaskKeys, FrontierKeys  # noqa: E402
from workers.state.keys import FleetKeys  # noqa: E402

SITE_KEYS = """\
# Every key of a site file

Generated from the model (`make docs`); [sites.md](../sites.md) explains how they work together. A value other than a table
replaces the profile's; `false` takes away what the profile has. A *selector* is a JMESPath (JSON), or a CSS selector or an
XPath (HTML), or a list of them of which the first that finds something counts; a *field* is a selector, too, or a table
as in [A field](#a-field).
"""
CONVERTERS = """
## Converters

`as` is not needed where it follows from the field's name: `id`, `forum_id`, `parent_id`, `thread` are `id`; `url` and
`load_more` are `url`;
`reply_count`, `views`, `threads`, `position` are `int`; `created_at`, `edited_at`, `last_activity` are `date`;
`sticky`, `deleted`, `opening` are `bool`; `body` is `html` on HTML pages and `text` on JSON pages; all others are `text`.

| `as` | makes | of an HTML element |
|---|---|---|
| `text` | text without the space around it; one space for each stretch of it (`body`: lines as they are) | its text |
| `id` | the same | its text; where `regex` finds nothing there, of its `href` |
| `int` | a whole number: `1,234`, `1 234`, `1.234`, `1.2k`, `3.4M`, `1.2万` | of its text |
| `date` | UTC: ISO 8601, epoch s or ms, dates in words, "2 hours ago", "yesterday, 14:02" | of its `datetime`, else its text |
| `url` | an absolute URL; none for `#`, `javascript:`, `mailto:` | of its `href`, else `src`, else its text |
| `html` | clean text, and for `body` the original as `body_html` | what is in it |
| `bool` | true if there is a match; for JSON and for text: false for `0`, `false`, `no`, `off`, `none`, `null` | true |
"""

NAMES: dict[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "true or false", HttpUrl: "URL", SecretStr: "text", Any: "any JSON",
}  # fmt: skip

CRAWL_SAMPLES = {
    "owner": "<owner>",
    "part": "<part>",
    "number": "<number>",
    "lot": "<lot>",
    "lane": "<lane>",
    "origin": "<origin>",
    "group": "<group>",
}
FLEET_SAMPLES = {
    "digest": "<digest>",
    "spider": "<spider>",
    "number": "<number>",
    "task_id": "<task id>",
    "job": "<job>",
    "run": "<run>",
    "service": "<service>",
    "word": "<word>",
    "key": "<key>",
    "step": "<step>",
}


def site_keys() -> str:
    """Return docs/reference/site-keys.md."""
    parts = [SITE_KEYS, _section("The file", "", Site)]
    shown: dict[type[BaseModel], str] = {}
    for path, title, model in _tables(Site, ""):
        if model in shown:
            parts.append(f"## {title}\n\nAs {shown[model]}.\n")
            continue
        shown[model] = title
        parts.append(_section(title, path, model))
    parts.append(_section("A field", "", FieldSpec))
    parts.append(CONVERTERS)
    return "\n".join(parts)


def _tables(model: type[BaseModel], path: str) -> Iterator[tuple[str, str, type[BaseModel]]]:
    """Yield every table of the file, each behind the table that it is in."""
    for name, field in model.model_fields.items():
        inner = _model(field.annotation)
        if inner is None or issubclass(inner, Select):
            continue
        place = f"{path}.{name}" if path else name
        yield place, f"`[{place}]`", inner
        yield from _tables(inner, place)


def _section(title: str, path: str, model: type[BaseModel]) -> str:
    return "\n".join([f"## {title}", "", _about(model), "", *_table_of(model.model_fields, path)]) + "\n"


def _table_of(fields: Mapping[str, FieldInfo], path: str) -> list[str]:
    lines = ["| key | value | default | meaning |", "|---|---|---|---|"]
    for name, field in fields.items():
        if field.exclude:
            continue
        inner = _model(field.annotation)
        if inner is not None and not issubclass(inner, Select) and not field.description:
            meaning = f"see `[{path + '.' if path else ''}{name}]`"
        else:
            meaning = field.description or "*field*"
        lines.append(
            f"| `{field.alias or name}` | {_name_of(field.annotation)} | {_default(field)} | {meaning} |".replace(
                "*field* |", "|"
            )
        )
    return lines


def _about(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return next((found for found in map(_model, get_args(annotation)) if found), None)
    return None


def _name_of(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(_name_of(one) for one in arguments if one is not type(None))
    if origin is Literal:
        return ", ".join(f'`"{one}"`' for one in arguments)
    if origin is tuple:
        return f"list of {_name_of(arguments[0])}"
    if origin is dict:
        return f"table of {_name_of(arguments[1])}"
    if hasattr(annotation, "__metadata__"):
        return _name_of(annotation.__origin__)
    model = _model(annotation)
    if model is not None:
        return "field" if model is FieldSpec else "selector" if model is Select else "table"
    return NAMES.get(annotation, str(annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or isinstance(value, BaseModel) or value in ((), {}, ""):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f'"{one}"' for one in value) + "]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value:g}`"


DATABASE = f"""# The database

Made from `forums/storage/schema/tables.py` by `make docs`. The tables have version {VERSION}; `trawl doctor` reports a database
of another one. Stored data can be exported (`trawl export`) and queried in place; write only to tables of your own.

- One row of `posts` or `comments` is the newest state that was seen. Each other text that it had is a row of `revisions`
  (`kind`, `site`, `id`).
- Rows that were removed on their site stay, with the time in `deleted_at`: `WHERE deleted_at IS NULL` leaves them out.
- An `outcome` of `gap` in `scans` means that threads of that forum may be missing until a later scan went deeper.
- Times are UTC: `timestamp with time zone` in PostgreSQL, `DATETIME(6)` in MySQL and MariaDB, text such as
  `2026-01-02T03:04:05.000000Z` in SQLite, which sorts as time does. Ids and names sort by their bytes in all of them.
- In MySQL and MariaDB every text has the collation `utf8mb4_0900_bin` or `utf8mb4_nopad_bin`: "a", "A" and "a " differ.
  The tests run on MariaDB 10.11; MySQL (from 8.0.17) has not been tried.
- There are no foreign keys: a comment may be stored before its post. `comments.post_id` is `posts.id`, `posts.forum_id` is
  `forums.id`, each with an equal `site`.

## Reading by SQL

`trawl sql` runs one SELECT or VALUES, also behind WITH, in a transaction that only reads and is rolled back. It streams
the rows, `--limit` of them at most, and ends after `--seconds`. An SQLite file is opened for reading. In PostgreSQL the
statement is that of a cursor, and the user must have no power over the server: superusers are refused, and members of
`pg_execute_server_program`, `pg_write_server_files`, `pg_signal_backend` and `pg_checkpoint`. The owner of the tables
may run it, but could end the fleet's connections by `pg_terminate_backend`; a user who can only read could not.
`deploy/compose.postgres.yml` has such a user. Elsewhere the owner of the database makes it with

    CREATE ROLE trawl_reader LOGIN PASSWORD '…';
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO trawl_reader;
    ALTER DEFAULT PRIVILEGES FOR ROLE trawl GRANT SELECT ON TABLES TO trawl_reader;

and `TRAWL_READING_URL=postgresql+psycopg://trawl_reader:…@host/trawl` names it. In MySQL and MariaDB words are refused
that write files or lock rows; give `TRAWL_READING_URL` a user with SELECT alone there, too.

Posts and comments have an index of the time of their publication, too (posts also one after `site`). A row without a date, or
with a date after its first sight, counts as published at that sight. The expression that the index serves is
`CASE WHEN created_at < first_seen_at THEN created_at ELSE first_seen_at END`; in MySQL and MariaDB it is a column,
`published_at`.

"""


def database() -> str:
    """Return docs/reference/database.md."""
    return DATABASE + "\n".join(_table(table) for table in metadata.tables.values())


def _table(table: Table[Any]) -> str:
    lines = [f"## `{table.name}`", "", str(table.info["title"]), "", "| column | type | meaning |", "|---|---|---|"]
    lines += [f"| {_name(column)} | {_type(column)} | {column.comment} |" for column in table.columns]
    indexes = sorted(", ".join(f"`{column.name}`" for column in index.columns) for index in table.indexes)
    if indexes:
        lines += ["", "Indexes in addition to the key: " + "; ".join(f"({names})" for names in indexes) + "."]
    return "\n".join(lines) + "\n"


def _name(column: Column[Any]) -> str:
    return f"**`{column.name}`**" if column.primary_key else f"`{column.name}`"


def _type(column: Column[Any]) -> str:
    names = {UtcDateTime: "time", Boolean: "boolean", BigInteger: "integer (64 bits)", Integer: "integer"}
    kind = next((name for known, name in names.items() if isinstance(column.type, known)), "text")
    return kind + (" or null" if column.nullable else "")


OUTPUTS = """# Outputs of events

Generated from `forums/events/rules.py` by `make docs`; [events.md](../events.md) explains how they work. An output is a table
`[outputs.NAME]` of `trawl.toml`, whose `kind` is one of these. `trawl alert --to` takes an address of the kinds that name one.
"""


def outputs() -> str:
    """Return docs/reference/outputs.md."""
    parts = [OUTPUTS, "## Keys of every kind", "", *_table_of(OutputOptions.model_fields, "outputs"), ""]
    for name, kind in kinds().items():
        own = {key: field for key, field in kind.model_fields.items() if key not in OutputOptions.model_fields}
        targets = ", ".join(f"`{one}`" for one in dict.fromkeys(kind.targets.values()))
        parts += [f"## `{name}`", "", _about(kind), ""]
        parts += [f"For `trawl alert --to`: {targets}", ""] if targets else []
        parts += [*_table_of(own, "outputs"), ""] if own else []
    return "\n".join(parts).rstrip() + "\n"


def redis_keys() -> str:
    """Return docs/reference/redis-keys.md: the part of the frontier and the fleet, and that of forums."""
    crawl = ForumCrawlKeys(CrawlKeys.for_spider("<spider>", namespace=""))
    found = [
        *_rows(crawl, ForumCrawlKeys, {}),
        *_rows(ForumFleetKeys(prefix="trawl:fleet"), ForumFleetKeys, {"site": "<site>", "output": "<output>"}),
    ]
    fleet = _rows(FleetKeys(prefix="trawl:fleet"), FleetKeys, FLEET_SAMPLES)
    of_fleet = _crawl_keys() + "\n## Keys of the fleet\n\n" + "\n".join(fleet) + "\n"
    return of_fleet + "\n## Keys of the forum application\n\n" + "\n".join(found) + "\n"


REFERENCES = {"redis-keys": redis_keys, "site-keys": site_keys, "database": database, "outputs": outputs}


def _rows(keys: object, cls: type, samples: Mapping[str, str]) -> list[str]:
    """Return one entry of the list for each method that `cls`, the class of `keys` or one of its bases, defines; `samples` are
    the arguments by their names.
    """
    found = []
    for name, method in vars(cls).items():
        if name.startswith("_") or name == "for_spider" or not callable(method):
            continue
        params = method.__code__.co_varnames[1 : method.__code__.co_argcount]
        doc = " ".join(line.strip() for line in (method.__doc__ or "").splitlines() if line.strip())
        kind, _, text = doc.partition(": ")
        key = method(keys, *(samples[param] for param in params))
        found.append(f"- `{key}` ({kind}): {text}")
    return found


def _crawl_keys() -> str:
    """Return the part of `docs/reference/redis-keys.md` about the frontier."""
    crawl = CrawlKeys.for_spider("<spider>", namespace="")
    found = [
        *(
            row
            for kind in (FrontierKeys, CrawlKeys, ItemKeys, StartTaskKeys, FedTaskKeys)
            for row in _rows(crawl, kind, CRAWL_SAMPLES)
        ),
        *_rows(NamespaceKeys(prefix="trawl:fleet"), NamespaceKeys, {}),
    ]
    head = "# Redis keys\n\nGenerated from `redis_components/keys/`, `workers/state/keys.py` and `forums/state/keys.py`\n"
    head += "by `make docs`; do not edit.\n\n"
    head += "With a namespace (`REDIS_NAMESPACE`, `TRAWL_NAMESPACE`) every key begins with it and a colon.\n\n"
    return head + "\n".join(found) + "\n"


if __name__ == "__main__":
    for name, made in REFERENCES.items():
        (ROOT / f"docs/reference/{name}.md").write_text(made(), "utf-8")
