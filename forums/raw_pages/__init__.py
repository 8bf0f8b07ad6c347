"""Pages as they came, for sites whose file says so (`raw.keep_days`): kept on the disk of the node that fetched them.

One folder for each site and day, `<data dir>/raw/<site>/<YYYY-MM-DD>/`, in it one file for each crawler process, in the WARC
format (ISO 28500), each record compressed separately: other tools read them, too.
"""

from .folders import raw_dir
from .store import RawStore
from .warc_record import RawPage

__all__ = ["RawPage", "RawStore", "raw_dir"]
