"""The Celery app. A message carries a run id and is only a hint: losing one costs time, never work."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("holdfast")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.set_default()  # threads that Celery did not start must find this app too
