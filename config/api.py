"""The API under /api/v1, put together from the rooms' routers."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest
from ninja import NinjaAPI, Router
from ninja.openapi.schema import OpenAPISchema

from config.errors import register
from recovery.api import router as recovery
from recovery.drain_api import router as drains
from recovery.fork_api import router as forks
from recovery.pin_api import router as pins
from recovery.replay_api import router as replays
from runs.rest.api import router as runs
from runs.rest.bulk_api import router as bulk
from runs.rest.fleet_api import router as fleet
from runs.rest.releases_api import router as releases
from runs.rest.spending_api import router as spending
from runs.rest.wire import StrictParser, StrictRenderer

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
DESCRIPTION = """
Runs, their journals and the decisions they wait for.

Sign in with `Authorization: Bearer <token>` (`manage.py token create`).

Lists are `{"items": [...], "next_cursor": …}`; times are ISO 8601 in UTC. A refusal is a problem document (RFC 9457).
"""


class HoldfastAPI(NinjaAPI):
    def get_openapi_schema(self, **place: Any) -> OpenAPISchema:
        """Ninja describes every answer as application/json; ours of 400 and above are problem documents."""
        schema = super().get_openapi_schema(**place)
        for path, methods in schema["paths"].items():
            for operation in methods.values():
                for status, answer in operation["responses"].items():
                    media = "text/event-stream" if path.endswith("/stream") else "application/json"
                    media = "application/problem+json" if int(status) >= 400 else media
                    if "content" in answer:
                        answer["content"] = {media: answer["content"].pop("application/json")}
        return schema


def build_api() -> NinjaAPI:
    api = HoldfastAPI(
        title="Holdfast",
        version="1",
        description=DESCRIPTION,
        urls_namespace="api",
        renderer=StrictRenderer(),
        parser=StrictParser(),
    )
    register(api)
    api.add_router("", runs)
    api.add_router("", fleet)
    api.add_router("", releases)
    api.add_router("", spending)
    api.add_router("", bulk)
    api.add_router("", recovery)
    api.add_router("", replays)
    api.add_router("", pins)
    api.add_router("", drains)
    api.add_router("", forks)
    api.add_router("", _elsewhere())
    return api


def _elsewhere() -> Router:
    """The last route: an unknown address is answered by us, before anybody is asked for a token."""
    router = Router()

    @router.api_operation(METHODS, "/{path:rest}", auth=None, include_in_schema=False)
    def unknown(request: HttpRequest, rest: str) -> None:
        raise Http404

    return router


api = build_api()
