"""Trawl against forum software that others wrote, installed from a registry and run on loopback: `make test-real-forums`.

- `software.py`       what a forum software has to offer to be tested: install, start, populate, change, truth
- `environment.py`    environments outside the repository, made once and kept in a cache
- `watching.py`       Trawl's side: a site file, real crawls, the database they end in
- `test_real_forums.py`  the test, once per software
- one module per software, and beside it `<software>_world.py`, a script that runs in that software's own environment
"""
