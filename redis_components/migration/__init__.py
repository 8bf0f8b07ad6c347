"""`trawl migrate scrapy-redis`: the queue, the dupefilter and the start tasks of a crawl that scrapy-redis began, for ours.

| module | what it does |
|---|---|
| `run` | the whole import |
| `project`, `both_keys` | what the project's settings say |
| `watch` | whether crawlers of scrapy-redis are still at work |
| `aside` | moving what is there out of the way of our keys |
| `queue`, `members`, `requests` | requests |
| `pickles`, `pickle_child` | reading pickles, shut in |
| `fingerprints`, `algorithm` | the dupefilter |
| `start_tasks` | start tasks with fields that ours refuses |
"""

from .project import Project, project_of
from .run import MigrationReport, Options, migrate

__all__ = ["MigrationReport", "Options", "Project", "migrate", "project_of"]
