"""Django settings. What people set comes from the environment (config/environment.py); apps read it from here."""

import os
from typing import Any

from django.utils.csp import CSP

from config.environment import ROOT, read_environment
from journal import patience
from runs.broker import transport_options

ENVIRONMENT = read_environment()
IS_WEB = os.environ.get("HOLDFAST_PROCESS") == "web"

HOLDFAST_DATA = ENVIRONMENT.data
HOLDFAST_DSN = ENVIRONMENT.dsn
HOLDFAST_AGENTS = ENVIRONMENT.agents
HOLDFAST_REGION = ENVIRONMENT.region
HOLDFAST_LEASE_SECONDS = ENVIRONMENT.lease_seconds
HOLDFAST_SWEEP_SECONDS = ENVIRONMENT.sweep_seconds
HOLDFAST_GRACE_SECONDS = ENVIRONMENT.grace_seconds
HOLDFAST_PAYLOAD_LIMIT = ENVIRONMENT.payload_limit
HOLDFAST_STREAMS = ENVIRONMENT.streams  # open at once in a web process; further pages ask again every few seconds
HOLDFAST_STORE_URL = ENVIRONMENT.store_url
HOLDFAST_BROKER_URL = ""  # for other projects that take our apps among theirs; here Celery's own setting says it
HOLDFAST_REDACT = ENVIRONMENT.redact
HOLDFAST_PROXIES = ENVIRONMENT.proxies or 0  # of our own, each adding to X-Forwarded-For
HOLDFAST_METRICS_TOKEN = os.environ.get("HOLDFAST_METRICS_TOKEN", "")
HOLDFAST_CONDITIONS = ["recovery.pages.banner.drains_in_force"]  # asked what else is said above every page
HOLDFAST_DEMO = os.environ.get("HOLDFAST_DEMO") == "1"  # `up` with its demo: a button there kills workers
# In development: an agent may change under its version, and its runs go on under the new content.
HOLDFAST_ALLOW_REDEFINE = os.environ.get("HOLDFAST_ALLOW_REDEFINE") == "1"
HOLDFAST_PROMOTE = os.environ.get("HOLDFAST_PROMOTE") == "1"  # what a worker announces anew takes the new runs
# Tests alone may use a database that forgets.
HOLDFAST_ALLOW_NO_FSYNC = os.environ.get("HOLDFAST_ALLOW_NO_FSYNC") == "tests"

BASE_DIR = ROOT
SECRET_KEY = ENVIRONMENT.secret_key
SECRET_KEY_FALLBACKS = [key for key in os.environ.get("SECRET_KEY_FALLBACKS", "").split(",") if key]
DEBUG = False
ALLOWED_HOSTS = list(ENVIRONMENT.hosts)
ROOT_URLCONF = "config.urls"
APPEND_SLASH = False  # no address of ours ends in one
ASGI_APPLICATION = "config.asgi.application"

INSTALLED_APPS = [
    "config",
    "recovery",
    "runs",
    "journal",
    "demo",
    "ninja",  # its OpenAPI page comes from our own static files: the policy below lets no other host in
    "django_htmx",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "runs.audit.doors",
    "config.errors.Refusals",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "runs.pages.shell.shell",
            ],
        },
    },
]

# The web process shares four connections among its request threads; workers and sweepers open the few they need.
_PLACES = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
_database: dict[str, Any] = {_PLACES[k]: v for k, v in ENVIRONMENT.database.items() if k in _PLACES}
_options: dict[str, Any] = {k: v for k, v in ENVIRONMENT.database.items() if k not in _PLACES}
if IS_WEB:  # a request that gets none in time is answered with 503
    _options["pool"] = {
        "min_size": 1, "max_size": 4, "timeout": 3, "max_idle": 30, "connection_class": patience.PatientConnection,
    }  # fmt: skip
    _options.setdefault("application_name", "holdfast web")
    _options.setdefault("connect_timeout", patience.CONNECT)
    _options["options"] = f"{_options.get('options', '')} {patience.SERVER}".strip()
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", "OPTIONS": _options} | _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Shared by all web processes: what an address or a name failed at in one counts in the others.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "holdfast_cache",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
ACCOUNT_ADAPTER = "runs.pages.login.Adapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]  # nobody signs up: users come from `manage.py token create`
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {"login": "200/m/ip", "login_failed": "50/5m/ip,10/5m/key"}
CSRF_FAILURE_VIEW = "runs.pages.stale.stale_form"

LOGIN_URL = "/login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CSP = {
    "default-src": [CSP.SELF],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "object-src": [CSP.NONE],
    "base-uri": [CSP.NONE],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
}
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = ENVIRONMENT.data / "static"  # `up` collects into it and granian serves it
STATICFILES_DIRS = [ROOT / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "config.logs.StruckFormatter", "format": "{asctime} {levelname} {name}: {message}", "style": "{"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "level": "INFO"},
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
    },
}

# Publishing fails within a second; what a worker needs beside this, its command sets (runs/broker.py).
CELERY_BROKER_URL = ENVIRONMENT.broker_url
CELERY_BROKER_CONNECTION_TIMEOUT = 1
CELERY_BROKER_HEARTBEAT = 0
CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(ENVIRONMENT.broker_url)
if ENVIRONMENT.broker_is_rabbitmq:
    CELERY_TASK_DEFAULT_QUEUE_TYPE = CELERY_TASK_CREATE_MISSING_QUEUE_TYPE = "quorum"
    CELERY_WORKER_CONSUMER = "config.consumer:Consumer"
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_CREATE_MISSING_QUEUES = True
CELERY_TIMEZONE = "UTC"
