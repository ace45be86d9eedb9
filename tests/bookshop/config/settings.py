import os

SECRET_KEY = "the shop's own"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "config.urls"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.postgres",
    "shop",
    "journal",
    "runs",
    "recovery",
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["SHOP_NAME"],
        "USER": os.environ["SHOP_USER"],
        "HOST": os.environ["SHOP_HOST"],
        "ATOMIC_REQUESTS": True,
    }
}
USE_TZ = True
CELERY_BROKER_URL = os.environ["SHOP_BROKER"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 8
HOLDFAST_AGENTS = ["shop.agents"]
