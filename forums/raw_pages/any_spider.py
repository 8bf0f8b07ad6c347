"""Former place of `workers.raw_pages.any_spider`, for settings of projects: read for one release."""

from workers.raw_pages.any_spider import KeepRawPages as KeepRawPages
