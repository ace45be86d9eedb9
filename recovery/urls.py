"""The addresses of putting things right."""

from django.urls import path

from recovery import views

app_name = "recovery"
urlpatterns = [
    path("runs/<str:ref>/intents/<int:seq>/reconcile", views.reconcile, name="reconcile"),
]
