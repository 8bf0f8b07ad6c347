"""The project's own Redis: used by every command that is started without TRAWL_REDIS_URL.

Each command, in any terminal, calls `redis_url()` and gets the same server. The first one starts it; when the last one
is gone, however it went, the server is stopped and nothing is left but its data.

    binary.py    which server program                     place.py    the folder, and what is in it
    session.py   a process's part: join or start          keeper.py   the process that runs the server for all
    server.py    one server process                       locks.py, wire.py   what these stand on
"""

from redis_components.server.variables import project_dir

from .server_files import ServerState, data_dir
from .session import redis_url, status, stop

__all__ = ["ServerState", "data_dir", "project_dir", "redis_url", "status", "stop"]
