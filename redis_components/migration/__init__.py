"""`trawl migrate scrapy-redis`: imports queue, dupefilter and start tasks of a crawl that scrapy-redis began.

`run` is the whole import: the project's settings, crawlers of scrapy-redis that still work, and each part in its order. `members`
takes foreign content out of the way of our keys and reads pickles, shut in by `pickle_child`; `queue` imports requests and start
tasks, `fingerprints` the dupefilter.
"""

from .run import MigrationReport, Options, Project, migrate, project_of

__all__ = ["MigrationReport", "Options", "Project", "migrate", "project_of"]
