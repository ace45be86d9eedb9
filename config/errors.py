"""One table from errors to HTTP, and the problem documents (RFC 9457) that carry them.

Every answer of the API with a status of 400 or more is a problem document: `type`, `title`, `status`, `detail`, and
what the error knows beside it: who decided what and when, which runs an abbreviated id names, which fields are wrong.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import page_not_found, permission_denied
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from journal import errors as journal
from recovery import errors as recovery
from runs import access, errors, guards, registry
from runs.pages import killing
from runs.pages.failures import refused
from runs.refusals import record_refusal
from runs.rest.wire import BodyRefused, strict_json

logger = logging.getLogger(__name__)

API = "/api/"
FORBIDDEN = 403
STATUS_OF: dict[type[Exception], int] = {
    OperationalError: 503,
    InterfaceError: 503,
    BodyRefused: 400,
    access.BadUsername: 422,
    access.OutsideScope: 403,
    access.PermissionMissing: 403,
    access.TokenNotFound: 404,
    access.UserNotFound: 404,
    access.UnknownRole: 422,
    registry.AgentsUnusable: 503,
    errors.AgentNotFound: 404,
    errors.AlreadyAnswered: 409,
    errors.AlreadyDecided: 409,
    errors.AnswerInvalid: 422,
    errors.ApprovalExpired: 410,
    errors.AskExpired: 410,
    errors.AskNotFound: 404,
    errors.BadInput: 422,
    errors.BulkCountChanged: 409,
    errors.BulkEmpty: 409,
    errors.BulkEnded: 409,
    errors.BulkNotFound: 404,
    errors.BulkTarget: 422,
    errors.BulkTooLarge: 422,
    errors.BulkUncounted: 422,
    errors.BulkVerbUnknown: 422,
    errors.BusinessIdTaken: 409,
    errors.CanaryIsCurrent: 409,
    errors.CanaryTaken: 409,
    errors.CursorUnknown: 422,
    errors.DigestMismatch: 409,
    errors.DigestMissing: 409,
    errors.EditInvalid: 422,
    errors.EditTooLate: 409,
    errors.FourEyes: 403,
    errors.GateExists: 409,
    errors.GateNotFound: 404,
    errors.GateScopeUnknown: 422,
    errors.IntentNotFound: 404,
    errors.JournalDamaged: 500,
    errors.NoCurrentRelease: 409,
    errors.NoQuestionOpen: 409,
    errors.NotAwaitingApproval: 409,
    errors.NotHeld: 409,
    errors.NotQuarantined: 409,
    errors.NotRetrying: 409,
    errors.NotYourApproval: 403,
    errors.NothingBefore: 409,
    errors.QuestionOpen: 409,
    errors.QueryInvalid: 422,
    errors.ReasonMissing: 422,
    errors.ReleaseNeeded: 409,
    errors.ReleaseNotFound: 404,
    errors.ReleaseTakesNoRuns: 409,
    errors.ReleaseUnserved: 409,
    errors.RequestKeyTaken: 409,
    errors.RunAmbiguous: 409,
    errors.RunEnded: 409,
    errors.StatelessRun: 409,
    errors.RunNotFound: 404,
    errors.ShareInvalid: 422,
    errors.SignalIdTaken: 409,
    errors.ToolNotFound: 404,
    errors.UnknownAgent: 422,
    errors.UnknownRelease: 422,
    errors.VerdictUnknown: 422,
    guards.CsrfRefused: 403,
    journal.NoSuchRun: 404,
    journal.PayloadAltered: 500,
    journal.PayloadMissing: 500,
    journal.PayloadStoreDown: 503,
    journal.PrefixDamaged: 409,
    journal.PrefixErased: 409,
    killing.WorkerNotKillable: 409,
    recovery.AlreadyReconciled: 409,
    recovery.AttemptOutdated: 409,
    recovery.CannotFork: 409,
    recovery.CannotProbe: 409,
    recovery.DrainEnded: 409,
    recovery.DrainExists: 409,
    recovery.DrainLifted: 409,
    recovery.DrainNotFound: 404,
    recovery.EvidenceMissing: 422,
    recovery.EvidenceUseless: 409,
    recovery.ForkEditRefused: 422,
    recovery.ForkRequestTaken: 409,
    recovery.FileTooLarge: 413,
    recovery.FileUnreadable: 422,
    recovery.NoRelative: 404,
    recovery.NotInDoubt: 409,
    recovery.NotJudgedYet: 409,
    recovery.OtherAgent: 409,
    recovery.PinOutrun: 409,
    recovery.PinRefused: 409,
    recovery.PinnedAlready: 409,
    recovery.ReleaseRetired: 409,
    recovery.ReplayNotFound: 404,
    recovery.ResultInvalid: 422,
    recovery.TooManyReplays: 429,
    recovery.TimeoutInvalid: 422,
    recovery.RunDriven: 409,
    registry.AgentsUnusable: 503,
}

# How pydantic says that a text is too long where its length is looked at after a check of ours.
AFTER_A_CHECK = re.compile(r"Value should have at most (\d+) items? after validation")
OF_A_NAME = "[key]"  # pydantic's last part of the place of an object's wrong name
IN_WORDS_OF_JSON = dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "Input should be an object") | {
    "string_unicode": "Input should be whole Unicode text, without lone surrogates",
}


def problem(status: int, name: str, detail: str, members: Mapping[str, Any] | None = None) -> HttpResponse:
    """A problem document; `name` is the last part of its type, in kebab case."""
    document = {
        "type": f"urn:holdfast:problem:{name}",
        "title": name.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
    }
    own = {key: value for key, value in (members or {}).items() if key not in document}
    return HttpResponse(strict_json(document | own), status=status, content_type="application/problem+json")


def status_of(error: BaseException) -> int | None:
    return next((STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF), None)


def problem_of(error: BaseException) -> HttpResponse | None:
    """The problem document of a domain error; None for an error that the table does not name."""
    status = status_of(error)
    if status is None:
        return None
    members = {key: value for key, value in vars(error).items() if not key.startswith("_")}
    return problem(status, kebab(type(error).__name__), str(error), members)


def said(error: BaseException) -> str:
    return str(access.PermissionMissing.__doc__) if isinstance(error, PermissionDenied) else str(error)


def permission_in(error: BaseException) -> dict[str, str]:
    """The permission that was missing, if that was it."""
    if isinstance(error, access.PermissionMissing):
        return {"permission": error.permission}
    return {"permission": str(error)} if isinstance(error, PermissionDenied) and error.args else {}


def kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def register(api: NinjaAPI) -> None:
    """Gives the API its handlers; the last one is for everything that nobody foresaw."""
    for kind in STATUS_OF:
        api.add_exception_handler(kind, _domain)
    api.add_exception_handler(AuthenticationError, _unauthenticated)
    api.add_exception_handler(ValidationError, _fields)
    api.add_exception_handler(RequestDataTooBig, _too_large)
    api.add_exception_handler(HttpError, _http)
    api.add_exception_handler(Http404, _unknown_address)
    api.add_exception_handler(OperationalError, _database_away)
    api.add_exception_handler(InterfaceError, _database_away)
    api.add_exception_handler(Exception, _unforeseen)


def _domain(request: HttpRequest, error: Any) -> HttpResponse:
    answer = problem_of(error)
    assert answer is not None
    if answer.status_code == FORBIDDEN:
        record_refusal(request, str(error), **permission_in(error))
    return answer


def _unauthenticated(request: HttpRequest, error: Any) -> HttpResponse:
    answer = problem(401, "not-signed-in", "Send a valid token: Authorization: Bearer <token>.")
    answer["WWW-Authenticate"] = 'Bearer realm="holdfast"'
    return answer


def _fields(request: HttpRequest, error: Any) -> HttpResponse:
    """Names each refused field, and never repeats its value."""
    refused = [{"field": _field(item["loc"]), "message": _message(item)} for item in error.errors]
    detail = "; ".join(f"{item['field']}: {item['message']}" for item in refused[:5])
    return problem(422, "fields-refused", detail[:1000], {"errors": refused[:100]})


def _field(place: tuple[Any, ...]) -> str:
    """Where it is, as the caller wrote it: without the parts that ninja puts in front (`body`, the argument's name)."""
    parts = list(place[1:])
    if parts and parts[0] in ("given", "filters"):
        parts = parts[1:]
    return ".".join(str(part)[:80] for part in parts if part != OF_A_NAME) or str(place[0])


def _message(item: Mapping[str, Any]) -> str:
    """Pydantic's sentence in the words of JSON."""
    said = IN_WORDS_OF_JSON.get(item.get("type", ""), item["msg"].removeprefix("Value error, "))
    if (counted := AFTER_A_CHECK.match(said)) is not None:  # a list is called "List"
        said = f"Text should have at most {counted[1]} characters"
    return f"its name: {said}" if OF_A_NAME in item["loc"] else str(said)


def _too_large(request: HttpRequest, error: Any) -> HttpResponse:
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return problem(413, "body-too-large", f"A request body may have {limit} bytes.", {"limit": limit})


def _http(request: HttpRequest, error: Any) -> HttpResponse:
    # Ninja wraps whatever its parser raises in an HttpError 400.
    known = problem_of(error.__cause__) if error.__cause__ else None
    return known or problem(error.status_code, kebab_phrase(error.status_code), str(error))


def _unknown_address(request: HttpRequest, error: Any) -> HttpResponse:
    return problem(404, "not-found", f"There is nothing at {request.path[:200]}.")


def _database_away(request: HttpRequest, error: Any) -> HttpResponse:
    logger.warning("the database did not answer: %s", error)
    answer = problem(503, "database-away", "The database does not answer or is busy; try again in a moment.")
    answer["Retry-After"] = "2"
    return answer


def _unforeseen(request: HttpRequest, error: Any) -> HttpResponse:
    logger.error("%s %s failed", request.method, request.path, exc_info=error)
    return problem(500, "internal-error", "Something went wrong on our side; it was written to the log.")


def kebab_phrase(status: int) -> str:
    return HTTPStatus(status).phrase.lower().replace(" ", "-")


class Refusals(MiddlewareMixin):
    """Outermost: what a command refuses is said in words on a page, below /api/ in a problem document."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        status = status_of(error)
        if status == FORBIDDEN or isinstance(error, PermissionDenied):
            record_refusal(request, said(error), **permission_in(error))
        if status is not None:
            return refused(request, error, status)
        # Here, and not where Django does it: on a thread of its own, whose connection nobody gives back to the pool.
        match error:
            case Http404() if request.path.startswith(API):
                return HttpResponse(status=404)
            case Http404():
                return page_not_found(request, error)
            case PermissionDenied():
                return permission_denied(request, error)
        return None

    def process_response(self, request: HttpRequest, answer: HttpResponseBase) -> HttpResponseBase:
        if answer.status_code < 400 or not request.path.startswith(API):
            return answer
        if answer.headers.get("Content-Type", "").startswith("application/problem+json"):
            return answer
        if answer.status_code == 404:
            return _unknown_address(request, None)
        detail = f"{request.method} {request.path[:200]}: {HTTPStatus(answer.status_code).description}."
        made = problem(answer.status_code, kebab_phrase(answer.status_code), detail)
        if "Allow" in answer.headers:
            made["Allow"] = answer.headers["Allow"]
        return made
