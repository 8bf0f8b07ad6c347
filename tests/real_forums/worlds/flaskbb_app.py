"""FlaskBB as an app: `python flaskbb_app.py PORT` serves the forum of the folder `$FORUM_FOLDER` on loopback.

FlaskBB 2.0.2 is of 2018 and asks `collections` for names that have moved since.
"""

import collections
import collections.abc
import os
import sys
import warnings

for name in ("Mapping", "MutableMapping", "Sequence", "MutableSet", "Iterable", "Callable", "Hashable", "Set"):
    if not hasattr(collections, name):
        setattr(collections, name, getattr(collections.abc, name))
warnings.simplefilter("ignore")

from flaskbb.app import create_app
from flaskbb.configs.default import DefaultConfig
from sqlalchemy import event
from sqlalchemy.engine import Engine

FOLDER = os.environ["FORUM_FOLDER"]


class Configuration(DefaultConfig):
    SQLALCHEMY_DATABASE_URI = f"sqlite:///{FOLDER}/flaskbb.sqlite"
    WHOOSHEE_DIR = f"{FOLDER}/whoosh"
    WHOOSHEE_ENABLE_INDEXING = False
    USE_DEFAULT_LOGGING = False
    SECRET_KEY = WTF_CSRF_SECRET_KEY = "not secret"


@event.listens_for(Engine, "connect")
def be_quick(connection, _record) -> None:
    connection.execute("PRAGMA synchronous=OFF")  # this forum need not survive a power cut


def make():
    return create_app(config=Configuration, instance_path=FOLDER)


if __name__ == "__main__":
    # one request at a time: its Markdown parser keeps its state in one object, and threads get pieces of each other's posts
    make().run(host="127.0.0.1", port=int(sys.argv[1]), threaded=False, use_reloader=False)
