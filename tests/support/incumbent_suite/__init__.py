"""scrapy-redis's published test suite, run unmodified on `redis_components`: `make test-scrapy-redis`."""
