"""Raw pages: responses as received, stored on the disk of the node that fetched them, for sites with `raw.keep_days`.

Each site and day has a folder, `<data dir>/raw/<site>/<YYYY-MM-DD>/`, with one file for each crawler process in the WARC format
(ISO 28500). Each record is compressed separately, so that other tools can read the files.
"""

from .folders import raw_dir
from .store import RawStore
from .warc_record import RawPage

__all__ = ["RawPage", "RawStore", "raw_dir"]
