from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, register


class RunsConfig(AppConfig):
    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        register(check_agents, "agents")


def check_agents(**_kwargs: Any) -> list[CheckMessage]:
    """Imported when somebody checks: it knows the engine, which most commands do without."""
    from runs.checks import check_agents

    return check_agents()
