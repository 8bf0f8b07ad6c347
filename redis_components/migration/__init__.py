"""`trawl migrate scrapy-redis`: the queue, the dupefilter and the start tasks of a crawl that scrapy-redis began."""
