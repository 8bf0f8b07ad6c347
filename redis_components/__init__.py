"""Everything that speaks Redis: the frontier, and Scrapy's components on it.

Import from the modules. Nothing is gathered here: the core would then import Scrapy, and whoever reads a key would wait for it.
"""
