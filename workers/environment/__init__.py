"""The fleet's environment variables: type, default and meaning of each. Those of the forum crawl are in `forums/environment.py`.

`variables.py` declares the variables; `declaration.py` reads, validates and parses them.
`redis_components.server.variables` selects the source of a value (environment, `<name>_FILE`, `.env`); the frontier shares it,
and reads its own four variables without these declarations.
"""
