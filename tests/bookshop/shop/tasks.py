from celery import shared_task
from django.db import transaction

from runs.sdk import start
from shop.models import Order


@shared_task
@transaction.atomic
def take(number: int, fail: bool = False) -> str:
    Order.objects.create(number=number)
    run_id = start("give-back", {"number": number})
    if fail:
        raise ValueError("no, after all")
    return str(run_id)
