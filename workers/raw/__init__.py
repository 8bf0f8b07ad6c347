"""Pages as they came, for sites whose file says so (`raw.keep_days`): kept on the disk of the node that fetched them.

One folder for each site and day, `<data dir>/raw/<site>/<YYYY-MM-DD>/`, in it one file for each crawler process, in the WARC
format (ISO 28500), each record compressed by itself: other tools read them, too.
"""

from .page import RawPage
from .places import raw_dir
from .store import RawStore

__all__ = ["RawPage", "RawStore", "raw_dir"]
