"""Operation of a fleet, on top of `workers`, which launches and supervises crawlers as they are declared.

overview/     its state in one reading, and what needs attention     jobs/      jobs, groups of spiders and their runs
consumers/    where items go: files, buckets, databases              deploy/    versions of a project, checks and rehearsals
backup/       archive and restoration                                seed_urls.py   URLs for any service

`workers` imports none of it. The task `run_crawler` hands a node the functions by which versions and runs take part in a launch
(`workers.node.host.NodeHooks`), and the table of targets names sinks by their import path (`workers.targets`).
"""
