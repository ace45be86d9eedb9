"""The web process's entry point, for granian or any other ASGI server."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
os.environ["HOLDFAST_PROCESS"] = "web"  # read by the settings: the web process alone keeps a connection pool

from django.core.asgi import get_asgi_application  # after the line above, which the settings read

application = get_asgi_application()
