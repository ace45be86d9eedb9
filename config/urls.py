"""Every address of Holdfast."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from config import health
from config.api import api
from config.manual import manual
from config.metrics import metrics
from config.slashes import nowhere, without_slash
from runs.pages import login
from runs.pages.failures import failed as handler500
from runs.pages.failures import not_understood as handler400
from runs.pages.login import too_many as handler429

__all__ = ["handler400", "handler429", "handler500", "urlpatterns"]

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("login", login.login_page, name="login"),
    path("logout", login.logout_page, name="logout"),
    path("docs/", manual, {"page": ""}, name="manual"),
    path("docs/<path:page>", manual),
    path("api/v1/", api.urls),
    path("", include("runs.pages.urls")),
    path("", include("recovery.urls")),
    re_path(r"^(?!api/|docs/)(?P<there>[^/].*[^/])/$", without_slash),
    re_path(r"", nowhere),
]
