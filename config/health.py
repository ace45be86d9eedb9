"""What a load balancer asks: /healthz (this process answers) and /readyz (it can do its work)."""

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from journal.durability import durability_faults


def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, keeps what it is told and has this version's tables; else 503 with the reasons."""
    faults = readiness_faults()
    status = 503 if faults else 200
    return JsonResponse({"status": "refused" if faults else "ok", "faults": faults}, status=status)


def readiness_faults() -> list[str]:
    try:
        faults = [] if settings.HOLDFAST_ALLOW_NO_FSYNC else durability_faults()
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        return [f"the database does not answer: {str(error).strip()}"]
    return faults + [f"migration {migration} is not applied" for migration, _ in missing]
