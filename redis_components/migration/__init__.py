"""`trawl migrate scrapy-redis`: imports queue, dupefilter and start tasks of a crawl that scrapy-redis began.

| module | its part | |---|---| | `run` | the whole import | | `project`, `both_keys` | the project's settings | | `watch` |
detection of crawlers of scrapy-redis that still work | | `aside` | moving foreign content out of the way of our keys | |
`queue`, `members`, `requests` | requests | | `pickles`, `pickle_child` | reading pickles, shut in | | `fingerprints`,
`algorithm` | the dupefilter | | `start_tasks` | start tasks with fields that ours refuses |
"""

from .run import MigrationReport, Options, Project, migrate, project_of

__all__ = ["MigrationReport", "Options", "Project", "migrate", "project_of"]
