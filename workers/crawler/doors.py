"""Closes what a crawler of the fleet could be led through, in any project: consoles, other schemes than http and https, private
addresses. A project, a spider or a service opens each by its name (docs/services.md).
"""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest
from scrapy.settings import default_settings
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.url import add_http_if_no_scheme
from yarl import URL

from redis_components.scheduler import set_aside
from redis_components.scrapy_glue.engine import ForCrawler
from redis_components.server.printable import masked
from redis_components.start_tasks.seeding import WEB
from workers.http.client import PrivateAddress, allowance_of, may_connect
from workers.http.public_addresses import allowance_by, private_addresses_allowed

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings, Settings

ORDER = 55
"""Before robots.txt is asked for; after the forums' middleware, which decides what a request may reach."""
LONGEST = 500
"""Characters of a URL in a reason: a `data:` URL may be a page."""
_CONSOLES = {
    "TELNETCONSOLE_ENABLED": "scrapy.extensions.telnet.TelnetConsole",
    "REMOTE_CONTROL_ENABLED": "scrapy.extensions.remote_control.RemoteControl",
}
"""Extensions that run the Python of a caller; Scrapy has both on. Not to load them makes a crawler's start a tenth shorter."""
GUARDED = "workers.http.client.DownloadHandler"
OF_TWISTED = ("TWISTED_REACTOR", "TWISTED_DNS_RESOLVER", "DOWNLOADER_CLIENTCONTEXTFACTORY")
"""Settings that only Scrapy's own HTTP client reads: a project with one of them keeps that client."""

logger = logging.getLogger(__name__)


class ClosedDoor(IgnoreRequest):
    """A request leads to a scheme or an address that neither the project nor the service has opened."""


def close_doors(settings: Settings) -> None:
    """Change Scrapy's defaults, which everything that a project, a spider or a service sets overrides; `settings` have the
    spider's own. Raises ConfigError.
    """
    closed = {**dict.fromkeys(_CONSOLES, False), "ALLOW_PRIVATE_ADDRESSES": private_addresses_allowed()}
    settings.setdict(closed, priority="default")
    settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES_BASE", Doors, ORDER)
    unloaded = {path for name, path in _CONSOLES.items() if not settings.getbool(name)}
    extensions = {path: at for path, at in settings.getdict("EXTENSIONS_BASE").items() if path not in unloaded}
    settings.set("EXTENSIONS_BASE", extensions, settings.getpriority("EXTENSIONS_BASE") or 0)
    handlers = {scheme: path if scheme in WEB else None for scheme, path in settings.getdict("DOWNLOAD_HANDLERS_BASE").items()}
    if not any(settings.get(name) != getattr(default_settings, name) for name in OF_TWISTED):
        handlers |= dict.fromkeys(WEB, GUARDED)
    settings.set("DOWNLOAD_HANDLERS_BASE", handlers, priority="default")


def open_schemes(settings: BaseSettings) -> frozenset[str]:
    """Return the schemes of URLs that a crawl by these settings fetches."""
    return frozenset(scheme for scheme, path in settings.getwithbase("DOWNLOAD_HANDLERS").items() if path is not None)


class Doors(ForCrawler):
    """Downloader middleware: a request that leads through a closed door is kept among the dead ones, not fetched."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._schemes = open_schemes(crawler.settings)
        self._allowed = allowance_by(crawler.settings)

    def process_request(self, request: Request) -> None:
        """Raise ClosedDoor for a scheme that is not open, and for an address that is not public, also of a proxy."""
        shown = masked(request.url[:LONGEST])
        if (scheme := urlparse_cached(request).scheme) not in self._schemes:
            raise ClosedDoor(f"{shown}: {scheme}: is closed; name its handler in DOWNLOAD_HANDLERS to open it")
        allowance = allowance_of(request) | self._allowed
        for url in filter(None, (request.url, request.meta.get("proxy"))):
            host = _host_of(str(url))
            if (address := _address(host)) and not may_connect(allowance, host, address):
                raise ClosedDoor(f"{shown}: {host} is not a public address; name it in ALLOW_PRIVATE_ADDRESSES to open it")

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Keep the request with the reason; a name that resolved to a private address was tried again before."""
        if isinstance(exception, ClosedDoor | PrivateAddress):
            logger.error("not fetched: %s", exception)
            set_aside(self._crawler, request, str(exception))


def _host_of(url: str) -> str:
    try:
        return (URL(add_http_if_no_scheme(url)).host or "").rstrip(".")
    except ValueError:
        return ""


def _address(host: str) -> str:
    """Return the address that `host` is in any notation (`127.1`, `0x7f000001`, `localhost`); "" for a name to be resolved."""
    if host == "localhost" or host.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)[0][4][0]) if host else ""
    except (OSError, UnicodeError):
        return ""
