"""What Trawl assumes of Scrapy's and Celery's internals, each assumption by name: these tests fail first when one changes."""
