"""Site files: what is crawled, declared in `sites/<site>.toml`."""

from .errors import SiteError, UnreadablePage
from .load import load_all, load_site, load_sites, sites_dir
from .model import Site

__all__ = ["Site", "SiteError", "UnreadablePage", "load_all", "load_site", "load_sites", "sites_dir"]
