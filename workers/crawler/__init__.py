"""The crawler process: `python -m workers.crawler` runs one spider under supervision."""
