"""What Scrapy puts around the forum spiders, in any project; a spider of somebody's own has none of it."""

from __future__ import annotations

MIDDLEWARES: dict[str, dict[str, int | None]] = {
    "DOWNLOADER_MIDDLEWARES": {
        "forums.breaker.missing_site_file.SiteFiles": 40,  # what belongs to a site whose file is missing or wrong waits
        # a site's requests reach its own places alone, others only what a site file names
        "forums.sites.http.allowed_origins.AllowedSites": 50,
        "forums.sites.http.politeness.Manners": 60,  # the site's pace; before robots.txt is asked (100)
        "forums.breaker.middleware.SiteWatch": 560,  # finds block pages: after redirects and decompression, before a retry
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,  # the next one in its place, where COOKIES_ENABLED is set
        "forums.sites.http.cookies.SiteCookies": 700,
        "forums.sites.http.politeness.SiteHeaders": 950,  # innermost: secrets are for trusted places only, and never in Redis
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # a request can switch it off
    },
    "SPIDER_MIDDLEWARES": {"forums.breaker.middleware.BackToTheQueue": 10},  # pages that a callback finds blocked
}
"""Setting -> middlewares and their places; an entry of the project goes before them."""
