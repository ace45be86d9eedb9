from django.db import transaction
from django.http import HttpRequest, JsonResponse

from runs.sdk import astart, start
from shop.models import Order


def order(request: HttpRequest, number: int) -> JsonResponse:
    Order.objects.create(number=number)
    run_id = start("give-back", {"number": number}, request_key=f"order-{number}")
    if "fail" in request.GET:
        raise ValueError("no, after all")
    return JsonResponse({"run": str(run_id)})


@transaction.non_atomic_requests
async def later(request: HttpRequest, number: int) -> JsonResponse:
    await Order.objects.acreate(number=number)
    return JsonResponse({"run": str(await astart("give-back", {"number": number}))})
