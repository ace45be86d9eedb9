from django.apps import AppConfig
from django.core.checks import register

from journal.defaults import check_project, supply


class JournalConfig(AppConfig):
    name = "journal"
    verbose_name = "Journal"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        supply()
        register(check_project)
