"""Values of settings: objects by their dotted path, and numbers. A wrong value is refused with the setting's name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from scrapy.utils.misc import load_object

from .errors import ConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def object_of(settings: BaseSettings, name: str, default: str | None = None) -> Any:
    """Return the object that the setting `name` (else `default`) names: a class, a function, an object or a module; None where
    neither is set.

    Raises ConfigError with the setting's name and value.
    """
    return loaded(settings.get(name) or default, name)


def loaded(value: Any, name: str) -> Any:
    """Return the object at the dotted path `value`; other than text is returned as it is. Raises ConfigError with `name`."""
    if not isinstance(value, str):
        return value
    try:
        try:
            return load_object(value)
        except (NameError, ValueError):  # no such object in its module, or no dot at all: a module then
            return import_module(value)
    except Exception as exc:  # the user's module may raise anything while it is imported
        raise ConfigError(f"{name} = {value!r} cannot be loaded: {type(exc).__name__}: {exc}") from exc


def number_of(settings: BaseSettings, name: str, default: float) -> Any:
    """Return the setting `name` as a number of the type of its default. Raises ConfigError for another value."""
    value = settings.get(name, default)
    try:
        return type(default)(value)
    except (TypeError, ValueError) as exc:
        raise ConfigError(f"{name} = {value!r} is not a {'whole number' if isinstance(default, int) else 'number'}") from exc
