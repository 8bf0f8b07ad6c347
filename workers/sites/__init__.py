"""Site files: what is crawled, declared in `sites/<site>.toml`."""

from .load import load_site, load_sites, sites_dir
from .model import Site, SiteError

__all__ = ["Site", "SiteError", "load_site", "load_sites", "sites_dir"]
