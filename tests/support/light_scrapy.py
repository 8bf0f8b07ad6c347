"""Scrapy without the two extensions that tests do not use and that cost a fifth of a process's start."""

from scrapy.settings import default_settings

TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
_UNUSED = ("scrapy.extensions.telnet.", "scrapy.extensions.remote_control.")
EXTENSIONS_BASE = {name: at for name, at in default_settings.EXTENSIONS_BASE.items() if not name.startswith(_UNUSED)}
