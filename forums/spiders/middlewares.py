"""Scrapy middlewares of the forum spiders, in any project; other spiders do not get them."""

from __future__ import annotations

MIDDLEWARES: dict[str, dict[str, int | None]] = {
    "DOWNLOADER_MIDDLEWARES": {
        "forums.breaker.missing_site_file.SiteFiles": 40,  # holds requests of sites with a missing or invalid file
        # restricts a site's requests to its own origins, other requests to origins in site files
        "forums.sites.http.allowed_origins.AllowedSites": 50,
        "forums.sites.http.politeness.SitePoliteness": 60,  # the site's delays; before the robots.txt middleware (100)
        "forums.breaker.middleware.SiteWatch": 560,  # finds block pages: after redirects and decompression, before a retry
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware": None,  # replaced by SiteCookies if COOKIES_ENABLED is set
        "forums.sites.http.cookies.SiteCookies": 700,
        "forums.sites.http.politeness.SiteHeaders": 950,  # innermost: secrets go to trusted origins only, and never into Redis
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,  # a request can switch it off
    },
    "SPIDER_MIDDLEWARES": {"forums.breaker.middleware.BackToTheQueue": 10},  # requests pages again that a callback finds blocked
}
"""Setting -> middlewares and their orders; the project's entries override them."""
