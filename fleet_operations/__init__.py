"""Operation of a fleet: what is loaded by its commands, tasks and pages, and never by what launches and supervises its crawlers.

overview/     its state in one reading, and what needs attention     jobs/      jobs, groups of spiders and their runs
consumers/    where items go: files, buckets, databases              deploy/    versions of a project, checks and rehearsals
backup/       archive and restoration                                seed_urls.py   URLs for any service

`workers` imports none of it: a task hands a node the functions that it needs (`workers.node.host.NodeHooks`).
"""
