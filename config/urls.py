"""Every address of Holdfast."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, path

from config import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("login", LoginView.as_view(template_name="login.html", redirect_authenticated_user=True), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
]
