"""Puts the rooms together: settings, addresses, the Celery app, embedded servers and the supervisor."""

from config.celery import app as celery_app

__all__ = ["celery_app"]
