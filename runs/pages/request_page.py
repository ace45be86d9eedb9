"""What a model saw: the request behind an answer, recomputed from the journal, as HTTP and as curl without secrets."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from django.db import connection
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from journal.entries import Entry, Kind
from journal.errors import PayloadError
from journal.payloads import payload_store, pointers_in
from journal.read import read_entries
from runs.access import VIEW
from runs.loops.errors import ModelFailed
from runs.models import Release, Run
from runs.pages.facts import model_in
from runs.pages.json_lines import Line, json_lines
from runs.queries import find_run
from runs.rest.answers import is_stateless
from runs.short_ids import short_id
from runs.signed_in import signed_in
from runs.state import MODEL_ACTOR

if TYPE_CHECKING:
    from runs.loops.exact import Exact

LARGEST_READ = 64 * 2**20  # bytes of payloads that are read for one request
LARGEST_COPY = 256 * 2**10  # characters kept in the page for the clipboard
LARGEST_RAW = 2**20
HIDDEN = re.compile(r"key|token|secret|auth|cookie|credential|password|signature", re.I)
# curl makes these itself, or they are of the client that asked.
LEFT_TO_CURL = re.compile(r"host|content-length|connection|accept-encoding|user-agent|x-stainless-.*", re.I)
VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*[\w/.:-]*$")  # an address that the environment has
KEYS = {"anthropic": ("x-api-key", "ANTHROPIC_API_KEY"), "google": ("x-goog-api-key", "GOOGLE_API_KEY"),
        "azure": ("api-key", "AZURE_OPENAI_API_KEY")}  # fmt: skip
NOT_SHOWN = "(not shown)"


@dataclass(frozen=True, slots=True)
class Shown:
    """A recomputed request. `curl` and `copy` are empty where the body is too large for a clipboard; then `file` names
    what curl would send. `same`: whether its digest is the one of the ATTEMPT; None: that names none."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    size: int
    digest: str
    same: bool | None
    lines: Sequence[Line]
    raw: str
    cut: int
    copy: str
    curl: str
    wire: bool


@dataclass(frozen=True, slots=True)
class RequestPage:
    """`answer`: the entry that answers it, if there is one. `cannot`: why it cannot be shown."""

    asked: Entry
    answer: Entry | None
    shown: Shown | None
    cannot: str = ""

    @property
    def told(self) -> Mapping[str, Any]:
        return self.asked.body

    @property
    def clients_now(self) -> str:
        """What this process would make it with, of the packages that made it then."""
        names = [one.rpartition(" ")[0] for one in str(self.told.get("client", "")).split(", ")]
        return ", ".join(f"{name} {installed(name)}" for name in names if name)


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


@require_GET
@signed_in(VIEW)
def request_page(request: HttpRequest, ref: str, seq: int) -> HttpResponseBase:
    run = find_run(ref, request.user)
    entries = [] if is_stateless(run) else read_entries(connection, run.id)
    asked, answer = attempt_behind(entries, seq)
    content = content_at(run, entries, asked.seq)
    exact, cannot = recomputed(content, entries, asked)
    as_ = request.GET.get("as", "")
    if exact is not None and as_ == "body":
        return body_file(run, asked.seq, exact.body)
    page = RequestPage(asked, answer, None if exact is None else shown_of(exact, asked.body, model_in(content)), cannot)
    context = {"section": "runs", "run": run, "short": short_id(run.id), "page": page, "raw": as_ == "raw", "seq": seq}
    return render(request, "runs/request.html", context)


def body_file(run: Run, seq: int, body: bytes) -> HttpResponse:
    """The exact bytes, as a download."""
    answer = HttpResponse(body, content_type="application/octet-stream")
    answer["Content-Disposition"] = f'attachment; filename="{short_id(run.id)}-{seq}-request.json"'
    return answer


def attempt_behind(entries: Iterable[Entry], seq: int) -> tuple[Entry, Entry | None]:
    """The model's ATTEMPT that this entry is, or that it answers, and its answer (or failure) if that has come."""
    asked: Entry | None = None
    for entry in entries:
        if entry.step is None and entry.kind == Kind.ATTEMPT:
            if asked is not None and asked.seq == seq:
                return asked, None
            asked = entry
        elif asked is not None and answers(entry):
            if seq in (entry.seq, asked.seq):
                return asked, entry
            asked = None
    if asked is not None and asked.seq == seq:
        return asked, None
    raise Http404("No model was asked there.")


def answers(entry: Entry) -> bool:
    if entry.kind == Kind.ERROR:
        return entry.step is None
    return entry.kind == Kind.PLAN and entry.actor == MODEL_ACTOR


def content_at(run: Run, entries: Iterable[Entry], seq: int) -> Mapping[str, Any]:
    """Of the release that the run was pinned to then."""
    release = run.release_id
    for entry in entries:
        if entry.seq < seq and entry.kind in (Kind.START, Kind.PIN) and "release" in entry.body:
            release = str(entry.body["release"])
    found = Release.objects.filter(id=release).first()
    return found.content if found is not None else {}


def recomputed(content: Mapping[str, Any], entries: Sequence[Entry], asked: Entry) -> tuple[Exact | None, str]:
    """The request, or why it cannot be made again."""
    if "digest" not in asked.body:
        return None, "a function of the agent's code was asked, not a provider: what it was given is the journal"
    if "stream" not in model_in(content):
        return None, "the agent makes its requests itself; the journal has what its library told of this one"
    try:
        until = resolved(entries, asked.seq)
        # The providers' clients take seconds to load: nobody waits for that but who asks for this page.
        from runs.loops.exact import exact_of

        return exact_of(content, until, asked.seq), ""
    except ModelFailed as failed:
        return None, failed.says
    except PayloadError as error:
        return None, f"a payload that it holds cannot be read: {error}"
    except TooLarge:
        return None, f"what it holds outside of the journal is more than {LARGEST_READ // 2**20} MB"
    except (LookupError, ValueError, TypeError) as error:
        return None, f"the journal does not lead to it: {type(error).__name__}: {error}"


class TooLarge(Exception):
    """More payloads than a page reads."""


def resolved(entries: Sequence[Entry], upto: int) -> list[Entry]:
    """Entries up to this one, payloads loaded. Raises TooLarge, PayloadError."""
    found = [entry for entry in entries if entry.seq <= upto]
    if sum(pointer.size for entry in found for pointer in pointers_in(entry.body)) > LARGEST_READ:
        raise TooLarge
    for entry in found:
        entry.body = payload_store().resolve(entry.body)
    return found


# -- as it is shown ----------------------------------------------------------------------------------------------------


def shown_of(exact: Exact, told: Mapping[str, Any], model: Mapping[str, Any]) -> Shown:
    text = exact.body.decode("utf-8", "backslashreplace")
    try:
        value = json.loads(exact.body)
    except ValueError:
        value = text
    wire = not exact.url.startswith("model:")
    copies = len(text) <= LARGEST_COPY
    headers = [(name, NOT_SHOWN if HIDDEN.search(name) else said) for name, said in exact.headers.items()]
    pretty = json.dumps(value, indent=2, ensure_ascii=False)
    url = without_keys(exact.url)
    sent = text if copies else None
    return Shown(
        exact.method, url, headers, len(exact.body), exact.digest,
        exact.digest == told["digest"] if told.get("digest") else None,
        json_lines(value), text[:LARGEST_RAW], max(len(text) - LARGEST_RAW, 0), pretty if copies else "",
        curl_of(exact.method, url, headers, sent, str(told.get("model", "")), model) if wire else "",
        wire,
    )  # fmt: skip


def without_keys(url: str) -> str:
    parts = urlsplit(url)
    pairs = [(name, "$KEY" if HIDDEN.search(name) else said) for name, said in parse_qsl(parts.query)]
    return urlunsplit(parts._replace(query=urlencode(pairs, safe="$"), netloc=parts.netloc.rpartition("@")[2]))


def curl_of(
    method: str,
    url: str,
    headers: Sequence[tuple[str, str]],
    body: str | None,
    name: str,
    model: Mapping[str, Any],
) -> str:
    """For a shell. The key is the reader's to have in the environment; without `body` curl reads request.json."""
    header, variable = key_of(name, model)
    value = f"Bearer ${variable}" if header == "authorization" else f"${variable}"
    place = f'"{url}"' if VARIABLE.match(url) else shlex.quote(url)
    lines = [f"curl -X {method} {place}", f'-H "{header}: {value}"']
    lines += [
        f"-H {shlex.quote(f'{name}: {said}')}"
        for name, said in headers
        if said != NOT_SHOWN and not LEFT_TO_CURL.fullmatch(name)
    ]
    lines.append("--data-binary @request.json" if body is None else f"--data-raw {shlex.quote(body)}")
    return " \\\n  ".join(lines)


def key_of(name: str, model: Mapping[str, Any]) -> tuple[str, str]:
    """The header that gives access, and the variable that holds the key."""
    provider = name.partition(":")[0]
    header, variable = next(
        (found for begins, found in KEYS.items() if provider.startswith(begins)),
        ("authorization", f"{re.sub('[^A-Z0-9]', '_', provider.partition('-')[0].upper()) or 'MODEL'}_API_KEY"),
    )
    given = model.get("api_key")
    if isinstance(given, Mapping):
        given = given.get(provider) or given.get(provider.partition("-")[0])
    return header, given.lstrip("$") if isinstance(given, str) and given.startswith("$") else variable
