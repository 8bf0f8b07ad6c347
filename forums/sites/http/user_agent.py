"""How Trawl names itself to sites, unless a site file or Scrapy's USER_AGENT says otherwise."""

USER_AGENT = "trawl/0.1 (+a crawl fleet; set USER_AGENT to something that says who you are)"
