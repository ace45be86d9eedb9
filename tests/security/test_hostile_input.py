"""Whatever is sent, an answer comes back: no field, address or body breaks the process, and none is half read."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from django.conf import settings
from django.test import Client

from journal.read import read_head
from runs.access import make_token
from runs.short_ids import short_id
from tests.pages.conftest import signed_in
from tests.pages.journals import Story, awaiting_approval
from tests.security.table import API, FULL, NONE, PAGES, address_of, in_turn
from tests.security.test_every_verb import STILL

pytestmark = pytest.mark.django_db
WRITES = [route for route in STILL if route in PAGES and PAGES[route].writes != NONE]
FIELDS = (
    "reason", "text", "name", "payload", "signal_id", "value", "digest", "note", "verdict", "evidence", "result",
    "attempt", "scope", "item", "args", "external_id", "shared", "counted", "request_id", "typed", "tool", "agent",
    "input", "request_key", "labels", "release",
)  # fmt: skip
BYTES = {
    "NUL": b"a\x00b",
    "a lone surrogate": b"\xed\xa0\x80",
    "half a character": b"\xc3",
    "no text": b"\xff\xfe\x00",
    "a long text": b"x" * 120_000,
    "deep JSON": b"[" * 50_000,
    "deep objects": b'{"a":' * 20_000,
    "a number without end": b"9" * 20_000,
    "NaN": b"NaN",
    "an early right-to-left mark": "\u202eabc\u2066".encode(),
}


@pytest.mark.parametrize("what", BYTES)
def test_no_field_of_any_form_breaks_it(cast: None, what: str) -> None:
    client, story = signed_in("max"), awaiting_approval()[0]
    client.raise_request_exception = False
    sent = quote_from_bytes(BYTES[what], safe="")
    turn = list(BYTES).index(what)
    for place, route in enumerate(WRITES):
        address = address_of(route, PAGES[route], short_id(story.run.id), str(story.run.id))
        single = [name for at, name in enumerate(PAGES[route].sends or ()) if in_turn(5, place, at, turn)]
        for chosen in (*single, None):  # fields of its own, then all there are at once
            given = {str(k): quote_from_bytes(str(v).encode()) for k, v in (PAGES[route].sends or {}).items()}
            given |= dict.fromkeys(FIELDS, sent) if chosen is None else {chosen: sent}
            body = "&".join(f"{name}={value}" for name, value in given.items()).encode()
            answer = client.generic("POST", address, body, "application/x-www-form-urlencoded")
            assert answer.status_code < 500, (route, chosen, answer.status_code)


QUERY = [
    "q", "after", "seq", "status", "agent", "label", "sort", "tab", "did", "since", "until", "verb", "run", "cursor",
]  # fmt: skip
IN_ADDRESSES = ["NUL", "a lone surrogate", "half a character", "no text", "an early right-to-left mark"]


@pytest.mark.parametrize("what", IN_ADDRESSES)
def test_no_address_breaks_it(cast: None, what: str) -> None:
    client, story = signed_in("max"), Story()
    client.raise_request_exception = False
    sent = quote_from_bytes(BYTES[what], safe="")
    turn = IN_ADDRESSES.index(what)
    for place, route in enumerate(STILL):
        address = address_of(route, PAGES[route], short_id(story.run.id), str(story.run.id))
        some = [QUERY[at :: len(IN_ADDRESSES)] for at in range(len(IN_ADDRESSES)) if in_turn(5, place, at, turn)]
        for fields in ([[field] for field in QUERY] if FULL else some) + [QUERY]:
            query = "&".join(f"{name}={sent}" for name in fields)
            answer = client.get(f"{address}{'&' if '?' in address else '?'}{query}")
            assert answer.status_code < 500, (route, fields)
    for path in ("/runs/{}", "/agents/{}", "/inbox/{}/2", "/jump/{}", "/docs/{}", "/static/{}", "/{}", "/runs/{}/hold"):
        assert client.get(path.format(sent)).status_code in (302, 400, 404), path


HUGE = ["99999999999999999999", "9223372036854775808", "-1", "1e9", "0x10", "٣", "²", "1" * 5000]


@pytest.mark.parametrize("number", HUGE)
def test_no_number_breaks_it(cast: None, number: str) -> None:
    client, story = signed_in("max"), Story()
    client.raise_request_exception = False
    for path in (
        "{run}?seq={n}", "{run}?after={n}", "{run}/entries/{n}", "{run}/state?at={n}", "/inbox/{ref}/{n}", "/bulk/{n}",
        "/gates/{n}/lift", "/views/{n}", "/audit?after={n}", "{run}/asks/{n}/answer", "/runs?after={n}",
        "/inbox?after={n}", "{run}/journal?after={n}", "/inbox/{ref}/2/adopt/{n}", "/bulk/{n}?after={n}",
    ):  # fmt: skip
        address = path.format(run=story.url, ref=short_id(story.run.id), n=number)
        assert client.get(address).status_code < 500, address


def test_a_body_that_is_too_large_is_refused_and_not_read(cast: None) -> None:
    client, story = signed_in("max"), Story()
    client.raise_request_exception = False
    limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    big = b"reason=" + b"x" * (limit + 1)
    for route in WRITES:
        address = address_of(route, PAGES[route], short_id(story.run.id), str(story.run.id))
        answer = client.generic("POST", address, big, "application/x-www-form-urlencoded")
        assert 400 <= answer.status_code < 500, (route, answer.status_code)
    refused = client.generic("POST", f"{story.url}/hold", big, "application/x-www-form-urlencoded")
    assert refused.status_code == 413 and b"Too large" in refused.content and b"Nothing was written." in refused.content
    many = "&".join(f"f{n}=x" for n in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1)).encode()
    answer = client.generic("POST", f"{story.url}/hold", many, "application/x-www-form-urlencoded")
    assert answer.status_code == 400
    assert read_head(None, story.run.id).last_seq == 1


BOMBS: dict[str, bytes] = {
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "deep and closed": b'{"reason":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "a number without end": b'{"reason":' + b"9" * 100_000 + b"}",
    "a name twice": b'{"reason":"a","reason":"b"}',
    "infinity": b'{"reason":1e999}',
    "a lone surrogate": b'{"reason":"\\ud800"}',
    "NUL": b'{"reason":"\\u0000"}',
    "no UTF-8": b'{"reason":"\xff"}',
    "many names": b"{" + b",".join(b'"n%d":1' % n for n in range(50_000)) + b"}",
    "nothing": b"",
    "a list": b"[]",
    "too large": b'{"reason":"' + b"x" * 3_000_000 + b'"}',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_no_body_breaks_the_api(cast: None, bomb: str) -> None:
    story, token = awaiting_approval()[0], make_token("max", "admin")
    client = Client(raise_request_exception=False)
    headers: Any = {"Authorization": f"Bearer {token}"}
    for method, path in API:
        if method == "GET":
            continue
        address = path.replace("{ref}", short_id(story.run.id)).replace("{seq}", "3").replace("{gate_id}", "7")
        answer = client.generic(method, f"/api/v1{address}", BOMBS[bomb], "application/json", headers=headers)
        assert answer.status_code < 500, (method, path, answer.content[:300])
        assert answer.status_code >= 400 or bomb == "NUL", (method, path)


def test_a_run_s_id_of_somebody_else_is_no_way_in_by_any_spelling(cast: None) -> None:
    from runs.access import set_scope

    story = Story()
    set_scope("olga", ["another"], actor="test")
    client = signed_in("olga")
    whole = str(story.run.id)
    for ref in (
        whole,
        whole.upper(),
        whole.replace("-", ""),
        f"{{{whole}}}",
        f"urn:uuid:{whole}",
        short_id(story.run.id),
    ):
        assert client.get(f"/runs/{ref}").status_code == 404, ref
        assert client.get(f"/jump?q={ref}").status_code == 200
        assert whole not in client.get(f"/jump?q={ref}").content.decode().replace(f'value="{ref}"', "").replace(ref, "")
        assert client.get(f"/runs?q=parent:{ref}").status_code in (200, 404, 422)
