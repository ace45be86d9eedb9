"""Settings behind TLS: set DJANGO_SETTINGS_MODULE=config.production, SECRET_KEY and HOLDFAST_HOSTS."""

import os

from django.core.exceptions import ImproperlyConfigured

from config.settings import *

if not os.environ.get("SECRET_KEY"):
    raise ImproperlyConfigured("SECRET_KEY is not set: every process of a deployment needs the same one.")

HOLDFAST_ALLOW_REDEFINE = False
HOLDFAST_PROXIES = 1 if ENVIRONMENT.proxies is None else ENVIRONMENT.proxies
SECURE_SSL_REDIRECT = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
