import cProfile, pstats, time
import pytest
from django.test import Client
from runs.generate import generate
from runs.models import Run
from runs.pages.run_page import Reading
from runs.short_ids import short_id
from runs.state import fold
from journal.read import read_entries
from journal.verify import verify_from_mark
from django.db import connection
pytestmark = pytest.mark.django_db(transaction=True)

def test_x(victor: Client):
    generate(1, 10000)
    run = Run.objects.get()
    t=time.perf_counter(); es=read_entries(connection, run.id); print('read', time.perf_counter()-t, len(es))
    t=time.perf_counter(); s=fold(run.id, es); print('fold', time.perf_counter()-t)
    t=time.perf_counter(); verify_from_mark(run.id); print('verify', time.perf_counter()-t)
    t=time.perf_counter(); p=Reading(run.id).refresh().page(run); print('page', time.perf_counter()-t)
    for _ in range(3):
        t=time.perf_counter(); victor.get(f"/runs/{short_id(run.id)}"); print('get', time.perf_counter()-t)
    pr=cProfile.Profile(); pr.enable(); victor.get(f"/runs/{short_id(run.id)}"); pr.disable()
    pstats.Stats(pr).sort_stats('cumtime').print_stats(45)
