"""Look-up of many ids with one statement and one parameter, since databases limit the number of parameters."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import ARRAY, Column, ColumnElement, Text, any_, bindparam, func, select


def among(column: Column[str], dialect: str, name: str = "among") -> ColumnElement[bool]:
    """Return the condition that `column` is among the values of the parameter `name`, built by `listed`."""
    if dialect == "postgresql":
        return column == any_(bindparam(name, type_=ARRAY(Text)))
    if dialect == "mysql":  # the driver writes values into the statement: their number is not limited
        return column.in_(bindparam(name, expanding=True))
    return column.in_(select(func.json_each(bindparam(name, type_=Text)).table_valued("value").c.value))


def listed(values: Collection[str], dialect: str) -> Any:
    """Return the value of the parameter of `among`."""
    return list(values) if dialect in ("postgresql", "mysql") else json.dumps(list(values), ensure_ascii=False)
