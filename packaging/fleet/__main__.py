"""`python -m trawl_fleet MODULE [ARGUMENT...]` runs one of Trawl's modules: `python -m trawl_fleet tasks worker -Q control`.

Without a module: the command `trawl`.
"""

from __future__ import annotations

import os
import sys

from . import enter, main

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(main())
    enter()
    from workers.process.run_module import own_module

    command = own_module(*sys.argv[1:])
    os.execv(command[0], command)  # noqa: S606 - no shell is what we want
