"""The page: what people see of the fleet in a browser, and what they do there.

rendering.py  templates, filters and colours        data.py    what single pages read, beyond the overview
views.py      each page as HTML                      routes.py  their addresses
"""
