"""Raw pages: responses as received, stored on the disk of the node that fetched them.

Each name of a site or a spider has a folder with days, `<data dir>/raw/<name>/<YYYY-MM-DD>/`, with one file for each crawler
process in the WARC format (ISO 28500). Each record is compressed separately, so that other tools can read the files.
"""

from .store import RawPage, RawStore, raw_dir

__all__ = ["RawPage", "RawStore", "raw_dir"]
