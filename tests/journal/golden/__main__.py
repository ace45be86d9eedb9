import os
import sys
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from tests.journal.golden import freeze  # noqa: E402  (models come after the settings)

freeze(map(Path, sys.argv[1:]))
