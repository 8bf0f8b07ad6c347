"""Site files: what is crawled, declared in `sites/<site>.toml`."""

from .errors import PageGone, SiteError, UnreadablePage
from .load import load_all, load_site, load_sites, sites_dir
from .model import Site

__all__ = ["PageGone", "Site", "SiteError", "UnreadablePage", "load_all", "load_site", "load_sites", "sites_dir"]
