"""Scrapy without what tests do not use and what costs a fourth of a process's start: two extensions, and cookies.

Scrapy looks up a component that is set to None, too, so they are taken out of the base settings.
"""

from scrapy.settings import default_settings

TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
_UNUSED = ("scrapy.extensions.telnet.", "scrapy.extensions.remote_control.")
EXTENSIONS_BASE = {name: at for name, at in default_settings.EXTENSIONS_BASE.items() if not name.startswith(_UNUSED)}
_COOKIES = "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"  # loads requests, urllib3 and filelock
DOWNLOADER_MIDDLEWARES_BASE = {name: at for name, at in default_settings.DOWNLOADER_MIDDLEWARES_BASE.items() if name != _COOKIES}
COOKIES = {_COOKIES: default_settings.DOWNLOADER_MIDDLEWARES_BASE[_COOKIES]}
"""For DOWNLOADER_MIDDLEWARES of a spider that sends cookies."""
ALLOW_PRIVATE_ADDRESSES = True  # the sites of tests are on this machine
