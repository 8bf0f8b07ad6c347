"""Places: scheme, host and port. Only places that a site file names are fetched, and only places that it trusts get
its secrets.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from yarl import URL

if TYPE_CHECKING:
    from .site import Site

Place = tuple[str, str | None, int | None]

NOWHERE: Place = ("", None, None)
"""The place of no site."""
THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})


@lru_cache(maxsize=1024)  # called several times for each request
def place_of(url: str) -> Place:
    """Return the place of a URL, read by the parser that the crawlers and `trawl sites` connect with, so that an odd address has
    one meaning. NOWHERE for an unreadable URL.

    As in browsers, `http` and `https`, two ports, and a name with a dot at its end and without are different places; upper and
    lower case, the long and the short form of an IPv6 address, and a port that is the scheme's own are not. An international
    name counts in the form that is sent (`xn--…`) only, as there is more than one way to encode the other form.
    """
    try:
        parsed = URL(url)
        host = parsed.raw_host
        if not url.isascii() and not (URL(url, encoded=True).raw_host or "").isascii():
            return NOWHERE
        return (parsed.scheme, host.lower(), parsed.port) if host else (parsed.scheme, None, None)
    except (ValueError, TypeError, IndexError):  # a port that is not a number; IndexError: `http://[::1]@/`, by yarl
        return NOWHERE


def is_this_machine(url: str) -> bool:
    """Return True if a URL leads to this machine by name."""
    return place_of(url)[1] in THIS_MACHINE


def shown(place: Place) -> str:
    """Return the place as users write it: `https://forum.example.org`, with a port that is not the scheme's own."""
    scheme, host, port = place
    named = f"[{host}]" if host and ":" in host else host or "?"
    return f"{scheme}://{named}" if port in (None, {"http": 80, "https": 443}.get(scheme)) else f"{scheme}://{named}:{port}"


def elsewhere(site: Site, url: str, came_from: str | None = None) -> str | None:
    """Return why this URL does not belong to the site, in a line that names both places; None for a URL at one of the site's
    places.

    `came_from`: the requested URL that redirected there.
    """
    place = place_of(url)
    if place in site.places:
        return None
    own = ", ".join(shown(one) for one in sorted(site.places, key=str))
    what = url if came_from is None else f"{came_from} redirects to {url}, which"
    return f"{what} is at no place of site {site.name!r} ({own}): if it belongs to the site, add {shown(place)} to `also_allowed`"


def may_have_secrets(site: Site, url: str, proxy: str | None = None) -> bool:
    """Return True if the site's headers and cookies may be sent with a request of this URL, through this proxy, if any.

    A proxy reads HTTP requests; of HTTPS it sees only the name of the host.
    """
    place = place_of(url)
    if place not in site.trusted_places:
        return False
    return proxy is None or place[0] == "https" or place_of(proxy) in site.trusted_places
