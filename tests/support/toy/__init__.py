"""A Scrapy project whose spiders do on demand what a crawler process has to survive; it needs no frontier and no forum.

SCRAPY_SETTINGS_MODULE=toy_settings selects it (`tests.support.fleet.toy_environment`).
"""
