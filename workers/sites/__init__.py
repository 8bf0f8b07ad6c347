"""Site files: what is crawled, declared in `sites/<site>.toml`."""

from workers.sites_folder import sites_dir

from .errors import PageGone, SiteError, UnreadablePage
from .load import load_all, load_site, site_in_use, site_names
from .model import Site

__all__ = ["PageGone", "Site", "SiteError", "UnreadablePage", "load_all", "load_site", "site_in_use", "site_names", "sites_dir"]
