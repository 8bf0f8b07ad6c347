"""docs/reference/site-keys.md, from the model: `python -m forums.sites.reference` (`make docs`)."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, HttpUrl, SecretStr
from pydantic.fields import FieldInfo

from forum_reader.definition.fields import CommentFields, FieldSpec, IndexFields, ListFields, PostFields, RecentFields, Select
from forum_reader.definition.site import Site

_HEAD = """\
# Every key of a site file

Generated from the model (`make docs`); [sites.md](../sites.md) explains how they work together. A value other than a table
replaces the profile's; `false` takes away what the profile has. A *selector* is a JMESPath (JSON), or a CSS selector or an
XPath (HTML), or a list of them of which the first that finds something counts; a *field* is a selector, too, or a table
as in [A field](#a-field).
"""
_FIELD_MODELS = (IndexFields, ListFields, PostFields, CommentFields, RecentFields)
_KINDS = """
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

_NAMES: dict[Any, str] = {
    str: "text", int: "integer", float: "number", bool: "true or false", HttpUrl: "URL", SecretStr: "text", Any: "any JSON",
}  # fmt: skip


def reference() -> str:
    """Return the page."""
    parts = [_HEAD, _section("The file", "", Site)]
    shown: dict[type[BaseModel], str] = {}
    for path, title, model in _tables(Site, ""):
        if model in shown:
            parts.append(f"## {title}\n\nAs {shown[model]}.\n")
            continue
        shown[model] = title
        parts.append(_section(title, path, model))
    parts.append(_section("A field", "", FieldSpec))
    parts.append(_KINDS)
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
    lines = [f"## {title}", "", _about(model), "", "| key | value | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        if field.exclude:
            continue
        inner = _model(field.annotation)
        if inner is not None and not issubclass(inner, Select) and not field.description:
            meaning = f"see `[{path + '.' if path else ''}{name}]`"
        else:
            meaning = field.description or "*field*"
        lines.append(f"| `{field.alias or name}` | {_type(field)} | {_default(field)} | {meaning} |".replace("*field* |", "|"))
    return "\n".join(lines) + "\n"


def _about(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


def _model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return next((found for found in map(_model, get_args(annotation)) if found), None)
    return None


def _type(field: FieldInfo) -> str:
    return _name_of(field.annotation)


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
    return _NAMES.get(annotation, str(annotation))


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


if __name__ == "__main__":
    sys.stdout.write(reference())
