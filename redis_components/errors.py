"""Errors of `redis_components`, each with a one-sentence message that names the fix.

TrawlError
├── ConfigError          a setting, option or file is wrong: the message names it and the fix
├── RedisUnavailable     no Redis can be reached or started
├── IncompatibleEngine   this Scrapy version lacks the point where a request is finished
├── LayoutError          the keys in Redis were written by another layout version
├── FleetBusy            another operation of the fleet has to end before this can begin
├── OnHold               an operator has paused or drained the site or service
├── BadStartTask         a start task is not understood: the message names the field at fault
├── TaskMustWait         a start task cannot become requests yet: it goes back, and waits while its site is held
└── CodecError           a request or payload cannot be turned into the other form
    ├── Unserializable   a request holds something that cannot be stored exactly
    └── Undecodable      a payload in Redis is corrupt, foreign, or from another version
"""

from __future__ import annotations

from collections.abc import Iterable


class TrawlError(Exception):
    """Base of every error that Trawl raises on purpose; its message is one line for the operator."""


class ConfigError(TrawlError):
    """A setting, option or file is wrong; the message names it and how to mend it."""


class RedisUnavailable(TrawlError):
    """Redis cannot be reached or started; check the URL, the password and that the server runs."""


MOST_LISTED = 30
"""Known names that an error lists; of more it has the nearest."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'news'?` for the end of an error about an unknown name, or "" where no known name is near to it.
    `name` may be of any type: it is foreign input.
    """
    from difflib import get_close_matches  # an error is worth its 5 ms, a start is not

    close = get_close_matches(str(name).lower()[:200], by_lower := {one.lower(): one for one in known}, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def unknown_name(what: str, name: str, known: Iterable[str]) -> ConfigError:
    """Return the error for an unknown name, with those that are known. `what`: as in `service`."""
    return ConfigError(f"unknown {what} {name!r:.100}: {there_are(name, known)}")


def check_choice(option: str, value: str, known: Iterable[str]) -> None:
    """Raise ConfigError for a value of an option that is none of the known ones."""
    if value not in (names := list(known)):
        raise ConfigError(f"{option} {value!r:.100} is unknown: write one of {', '.join(names)}{did_you_mean(value, names)}")


def there_are(name: str, known: Iterable[str]) -> str:
    """Return `there are a, b; did you mean 'a'?`; of more than `MOST_LISTED` names their number and the nearest three."""
    names = sorted(set(known))
    if len(names) <= MOST_LISTED:
        return f"there are {', '.join(names) or 'none'}{did_you_mean(name, names)}"
    from difflib import get_close_matches

    near = get_close_matches(name[:200], names, n=3, cutoff=0.0)
    return f"there are {len(names):,}, the nearest are {', '.join(near)}"


class IncompatibleEngine(TrawlError):
    """This Scrapy version has no known point where a request is finished; install the version that Trawl pins."""


class LayoutError(TrawlError):
    """The keys in Redis have another layout version; upgrade this process, or use another key pattern."""


class FleetBusy(TrawlError):
    """Another operation of the fleet has to end first; the message names it, and the way to end it."""


class OnHold(TrawlError):
    """An operator has paused or drained the site or service; the message names the operator, and the command that ends it."""


class BadStartTask(TrawlError):
    """A start task is not understood; the message names the field and its expected form."""


class TaskMustWait(TrawlError):
    """Raised in `make_request_from_data`: nothing is wrong with the start task, but with its `site`, which is to be held."""

    def __init__(self, site: str, reason: str) -> None:
        super().__init__(reason)
        self.site = site


class CodecError(TrawlError):
    """A request cannot be stored or read back exactly."""


class Unserializable(CodecError):
    """A request holds a value that cannot be stored exactly; the message names the field."""


class Undecodable(CodecError):
    """A stored payload is corrupt, foreign or from another version; it is set aside with this reason."""
