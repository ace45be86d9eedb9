"""Browsers that vanish without a word: the machine lost its power, the phone its network. The kernel would keep sending
to them for a quarter of an hour, and with each a stream would stay open. A stream says something every 15 seconds; what
is not acknowledged within 30 more ends the connection.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import ExitStack
from functools import cache
from pathlib import Path

FDS = Path("/proc/self/fd")
MILLISECONDS = 30_000


@cache
def drop_silent_peers() -> None:
    """For whoever called this process over TCP and whoever will. The server that runs us offers no such option, and has
    made its sockets by the time of the first stream. Where there is no /proc, nothing is done.
    """
    if not FDS.is_dir() or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return
    with ExitStack() as copies:
        found = [copies.enter_context(copy) for name in os.listdir(FDS) if (copy := _tcp_socket(int(name)))]
        ports = {copy.getsockname()[1] for copy in found if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)}
        for copy in found:
            if copy.getsockname()[1] in ports:  # not those to a database
                copy.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, MILLISECONDS)


def _tcp_socket(fd: int) -> socket.socket | None:
    """The socket behind this descriptor, under another one."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        copy = socket.socket(fileno=os.dup(fd))
    except OSError:  # closed meanwhile
        return None
    if copy.family in (socket.AF_INET, socket.AF_INET6) and copy.type == socket.SOCK_STREAM:
        return copy
    copy.close()
    return None
