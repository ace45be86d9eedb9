"""The page of one run and its fragments: guard, query, render. The address holds what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from journal.entries import Entry
from journal.export import export_run
from journal.read import read_entries
from runs.access import VIEW
from runs.audit import record
from runs.models import Run
from runs.pages.asked import ENTRY, STATE, Asked
from runs.pages.asked import whole as number
from runs.pages.controls import controls_of
from runs.pages.inspector import entry_page
from runs.pages.pointers import payload_answer, views_of
from runs.pages.run_page import Proof, Reading, RunPage, default_seq, proof_of
from runs.pages.told_state import told_state
from runs.queries import find_run
from runs.rest.answers import is_stateless
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.state import RunState, fold

RAW = 200  # entries on a page of the raw journal


@require_GET
@signed_in(VIEW)
def run_page(request: HttpRequest, ref: str) -> HttpResponseBase:
    run, asked = find_run(ref, request.user), Asked.of(request.GET)
    reading = Reading(run.id).refresh()
    page = reading.page(run, asked)
    return render(request, "runs/run.html", page_context(page) | inspected(request, page, reading))


def page_context(page: RunPage) -> dict[str, Any]:
    """What every partial of the page needs, in its first render and in its stream."""
    return {
        "page": page,
        "run": page.run,
        "short": short_id(page.run.id),
        "address": page.asked,
        "controls": controls_of(page.run, page.state),
    }


def inspected(request: HttpRequest, page: RunPage, reading: Reading) -> dict[str, Any]:
    """The inspector as the address asks for it."""
    if page.stateless:
        return {"section": "runs"}
    asked = page.asked
    chosen = asked.seq if asked.seq is not None and 1 <= asked.seq <= page.last_seq else default_seq(page)
    return {"section": "runs"} | inspector_context(request, page.run, reading, asked.at_entry(chosen), page.proof)


def inspector_context(
    request: HttpRequest, run: Run, reading: Reading, asked: Asked, proof: Proof | None = None
) -> dict[str, Any]:
    """`asked.seq` is in the journal. What only one tab shows is read for that one. `proof`: where it is known."""
    entries: Sequence[Entry] = reading.entries
    last = reading.state.seq
    shown = entry_page(run, reading.state, entries, asked.seq or last, (proof or proof_of(run.id)).mark)
    if shown is None:
        raise Http404("There is no such entry.")
    context = {
        "run": run,
        "short": short_id(run.id),
        "address": asked,
        "chosen": asked.seq,
        "entry": shown,
        "last_seq": last,
        "state_seq": (at := min(max(asked.at or last, 1), last)),
    }
    context["curls"] = curls(request.build_absolute_uri(f"/api/v1/runs/{run.id}"), shown.entry.seq, at)
    if asked.tab == STATE:
        against = None if asked.against is None else min(max(asked.against, 1), last)
        other = None if against is None else state_at(reading, against)
        context["then"] = told_state(state_at(reading, at), other)
    elif asked.tab != ENTRY:
        context["pointers"] = views_of(shown.entry.body)
    return context


def state_at(reading: Reading, seq: int) -> RunState:
    """Folded anew only where it is not the end's, which is there."""
    return reading.state if seq == reading.state.seq else fold(reading.state.run_id, reading.entries[:seq])


def curls(api: str, seq: int, at: int) -> list[tuple[str, str, str]]:
    """What a call of the API tells, the id of its element, and its address. The token is the reader's to fill in."""
    return [
        ("This run", "curl-run", api),
        (f"Entry {seq}", "curl-entry", f"{api}/journal?after={seq - 1}&limit=1"),
        (f"State at {at}", "curl-state", f"{api}/state?at={at}"),
    ]


@require_GET
@signed_in(VIEW)
def entry(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    """The inspector: the entry, or one of its other tabs."""
    run, asked = find_run(ref, request.user), Asked.of(request.GET).at_entry(seq)
    if is_stateless(run):
        raise Http404("A stateless run keeps no journal.")
    return render(request, "runs/_inspector.html", inspector_context(request, run, Reading(run.id).refresh(), asked))


@require_GET
@signed_in(VIEW)
def state(request: HttpRequest, ref: str) -> HttpResponseBase:
    """The inspector with the state at `at`, as the ruler asks for it."""
    run, asked = find_run(ref, request.user), Asked.of(request.GET)
    if is_stateless(run):
        raise Http404("A stateless run keeps no journal.")
    reading = Reading(run.id).refresh()
    last = reading.state.seq
    asked = replace(asked, at=min(max(asked.at or last, 1), last), seq=min(max(asked.seq or last, 1), last), tab=STATE)
    return render(request, "runs/_inspector.html", inspector_context(request, run, reading, asked))


@require_GET
@signed_in(VIEW)
def payload(request: HttpRequest, ref: str, seq: int, sha256: str) -> HttpResponseBase:
    shown = request.GET.get("shown") == "picture"
    return payload_answer(find_run(ref, request.user), seq, sha256, shown=shown)


@require_GET
@signed_in(VIEW)
def journal(request: HttpRequest, ref: str) -> HttpResponseBase:
    """The entries as they are stored, a page at a time."""
    run, after = find_run(ref, request.user), number(request.GET.get("after")) or 0
    found = [] if is_stateless(run) else read_entries(None, run.id, after=after, limit=RAW + 1)
    context = {
        "section": "runs",
        "run": run,
        "short": short_id(run.id),
        "entries": found[:RAW],
        "following": found[RAW - 1].seq if len(found) > RAW else None,
        "preceding": max(after - RAW, 0) if after else None,
        "proof": None if is_stateless(run) else proof_of(run.id),
    }
    return render(request, "runs/journal.html", context)


@require_GET
@signed_in(VIEW)
def journal_lines(request: HttpRequest, ref: str) -> HttpResponseBase:
    """The whole journal as `journal export` writes it. To take it is an act, too."""
    run = find_run(ref, request.user)
    record(request.user.get_username(), "journal.export", run=run.id, agent=run.agent)
    lines = "" if is_stateless(run) else "".join(f"{line}\n" for line in export_run(run.id))
    name = f"{short_id(run.id)}.jsonl"
    answer = HttpResponse(lines, content_type="application/x-ndjson")
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
