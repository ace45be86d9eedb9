#!/usr/bin/env python
"""Runs Holdfast's commands: `manage.py help` lists them."""

import io
import os
import sys


def main() -> None:
    if not (3, 12) <= sys.version_info[:2] <= (3, 14):
        sys.exit(f"holdfast: Python 3.12-3.14 is needed, this is {sys.version.split()[0]}. `make up` finds one.")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what the terminal's encoding lacks is written as an escape
    try:
        run()
    except KeyboardInterrupt:  # before a command could say it
        sys.exit(130)


def run() -> None:
    from django.core.exceptions import ImproperlyConfigured
    from django.db import InterfaceError, OperationalError

    from terminal.command import Utility

    try:
        Utility(sys.argv).execute()
    except ImproperlyConfigured as error:
        sys.exit(f"holdfast: {error}")
    except (OperationalError, InterfaceError) as error:
        data = os.environ.get("HOLDFAST_DATA", "var")
        where = "DATABASE_URL" if os.environ.get("DATABASE_URL") else f"HOLDFAST_DATA ({data})"
        said = str(error).strip().splitlines()[0]
        sys.exit(f"holdfast: the database does not answer; does it run, and is {where} right? {said}")


if __name__ == "__main__":
    main()
