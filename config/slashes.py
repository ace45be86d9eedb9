"""Addresses that are none. One with a slash too many at its end leads to the one without."""

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import resolve
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe


@csrf_exempt
def nowhere(request: HttpRequest) -> HttpResponse:
    """What no other address is. A view says so, and not the resolver: see `config.errors.Refusals`."""
    raise Http404


@require_safe
def without_slash(request: HttpRequest, there: str) -> HttpResponse:
    """Only to what there is."""
    if resolve(f"/{there}").func is nowhere:
        raise Http404
    asked = request.META.get("QUERY_STRING", "")
    return HttpResponseRedirect(f"/{there}" + (f"?{asked}" if asked else ""))
