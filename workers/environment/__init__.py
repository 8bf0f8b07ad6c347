"""The fleet's environment variables: type, default and meaning of each. Those of the forum crawl are in `forums/environment.py`.

`variables.py` declares them; `declaration.py` says how one is declared, read and refused; `values.py` parses services, hosts and
names. `redis_components.server.variables` decides where a value comes from (environment, `<name>_FILE`, `.env`); the frontier
shares it, and reads its own four variables without these declarations.
"""
