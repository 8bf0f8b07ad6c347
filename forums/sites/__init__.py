"""Site files: declarations of crawled sites in `sites/<site>.toml`."""

from forum_reader.definition.site import Site
from forum_reader.errors import PageGone, SiteError, UnreadablePage

from .load import load_all, load_site, site_in_use, site_names, site_to_ask, sites_dir

__all__ = [  # noqa: RUF022 - in groups
    # models and loading
    "Site",
    "load_all",
    "load_site",
    "site_in_use",
    "site_names",
    "site_to_ask",
    "sites_dir",
    # errors
    "PageGone",
    "SiteError",
    "UnreadablePage",
]
