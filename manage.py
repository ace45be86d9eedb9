#!/usr/bin/env python
"""Runs Holdfast's commands: `manage.py help` lists them."""

import os
import sys


def main() -> None:
    if not (3, 12) <= sys.version_info[:2] <= (3, 14):
        sys.exit(f"holdfast: Python 3.12-3.14 is needed, this is {sys.version.split()[0]}. `make up` finds one.")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

    from django.core.management import (
        execute_from_command_line,
    )

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
