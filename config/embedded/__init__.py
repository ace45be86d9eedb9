"""PostgreSQL and Valkey for one machine: from the wheels, kept below HOLDFAST_DATA, reached by unix sockets."""

import hashlib
import os
import tempfile
from pathlib import Path

LONGEST_SOCKET_FOLDER = 80  # a socket path may have 103 bytes on macOS, 107 on Linux; PostgreSQL adds 16 to the folder


class EmbeddedError(Exception):
    """An embedded server cannot be started."""


def socket_folder(home: Path) -> Path:
    """The folder for the sockets of a server that lives in `home`: `home` itself, or a short one if that is long."""
    if len(os.fsencode(home)) < LONGEST_SOCKET_FOLDER:
        return home
    return Path(tempfile.gettempdir(), "holdfast-" + hashlib.sha256(os.fsencode(home)).hexdigest()[:12])


def make_private(folder: Path) -> None:
    """Makes `folder` with mode 0700. The servers ask for no password: they are safe only while nobody else gets in.

    Raises EmbeddedError when the folder belongs to somebody else.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if os.geteuid() not in (0, folder.stat().st_uid):
        raise EmbeddedError(f"{folder} belongs to another user: set TMPDIR or HOLDFAST_DATA to a folder of your own.")
    folder.chmod(0o700)
