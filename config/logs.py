"""Log lines, without the secrets that calls use right now."""

from __future__ import annotations

import logging

from runs.secrets import struck_line


class StruckFormatter(logging.Formatter):
    """With its traceback and all: a tool's error may quote what the tool was given."""

    def format(self, record: logging.LogRecord) -> str:
        return struck_line(super().format(record))
