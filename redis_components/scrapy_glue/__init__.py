"""The connection of Scrapy to the frontier: engine hooks, pages in work, refusals, custom classes."""
