"""The scripted providers as a process, and what is ordered and read over HTTP."""

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo.providers.asked import Asked
from demo.providers.turns import BadScript, Call, Search, Text, Thinking, Turn, Usage, call
from tests.rig.ledger import PATIENCE, ROOT, wait_until

AUTHORISED = {"authorization": "Bearer a-secret"}


def decide(asked: Asked) -> Any:
    return f"{len(asked.said)} so far." if asked.results else call("lookup", said=asked.said[-1])


LINES = ["One.", "Two."]


@contextmanager
def process(folder: Path, *options: str) -> Iterator[str]:
    port_file = folder / "port"
    command = [sys.executable, "-m", "demo.providers", "--port", "0", "--port-file", str(port_file), *options]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: child.poll() is not None or port_file.exists(), "the providers listen")
        assert child.poll() is None
        assert child.stdout is not None
        url = child.stdout.readline().strip().removeprefix("providers: ")
        assert url == f"http://127.0.0.1:{port_file.read_text().strip()}"
        yield url
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE) == 0
    finally:
        child.kill()
        child.communicate()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = [f"--scenario=decided={__name__}:decide", f"--scenario=lines={__name__}:LINES"]
    with process(tmp_path_factory.mktemp("providers"), *options) as running:
        yield running


def send(url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


def said(url: str, model: str, *messages: dict[str, Any]) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "Hello."}, *messages]}
    status, answer = send(url, "POST", "/v1/chat/completions", body, AUTHORISED)
    assert status == 200, answer
    return answer["choices"][0]["message"]


def test_scenarios_are_loaded_at_the_start(url: str) -> None:
    asked = said(url, "decided")
    assert json.loads(asked["tool_calls"][0]["function"]["arguments"]) == {"said": "Hello."}
    result = {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "there"}
    assert said(url, "decided", asked, result)["content"] == "1 so far."
    assert said(url, "lines", {"role": "assistant", "content": "One."})["content"] == "Two."
    assert said(url, "scripted-echo")["content"] == "Hello."


def test_a_scenario_is_ordered_and_its_requests_are_read(url: str) -> None:
    turns = [{"blocks": ["Hm.", {"call": "lookup", "arguments": {"id": "o-1"}}], "usage": {"input": 7, "output": 3}}]
    assert send(url, "POST", "/scenarios", {"model": "ordered", "turns": [*turns, "Done."]})[0] == 201
    assert "ordered" in send(url, "GET", "/scenarios")[1]["models"]
    assert said(url, "ordered")["content"] == "Hm."
    (seen,) = send(url, "GET", "/requests?model=ordered")[1]["requests"]
    assert seen["usage"] == {"input": 7, "output": 3, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    assert (seen["answered"], seen["turn"], json.loads(seen["body"])["model"]) == (True, 0, "ordered")
    assert "a-secret" not in json.dumps(seen)
    assert send(url, "DELETE", "/requests")[0] == 200
    assert send(url, "GET", "/requests")[1] == {"requests": []}


def test_faults_are_ordered_read_and_removed(url: str) -> None:
    body = {"model": "lines", "messages": []}
    assert send(url, "POST", "/faults", {"kind": "overloaded", "model": "lines", "times": None})[0] == 201
    assert send(url, "POST", "/v1/messages", body, AUTHORISED)[0] == 529
    (fault,) = send(url, "GET", "/faults")[1]["faults"]
    assert (fault["kind"], fault["struck"], fault["times"]) == ("overloaded", 1, None)
    assert send(url, "DELETE", "/faults")[1] == {"removed": 1}
    assert send(url, "POST", "/v1/messages", body, AUTHORISED)[0] == 200
    assert send(url, "POST", "/release")[0] == 200


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_what_is_asked_wrongly_is_refused_as_the_provider_would(url: str, path: str) -> None:
    assert send(url, "POST", path, {"model": "lines"}, AUTHORISED)[0] == 200
    assert send(url, "POST", path, {"model": "lines"})[0] == 401
    assert send(url, "POST", path, {"model": "nobody"}, AUTHORISED)[0] == 404
    assert send(url, "POST", path, b"{", AUTHORISED)[0] == 400
    assert send(url, "POST", path, {"model": "lines", "messages": [1], "input": [1]}, AUTHORISED)[0] == 400


def test_no_conversation_is_kept(url: str) -> None:
    body = {"model": "lines", "input": "Hello.", "previous_response_id": "resp_1"}
    status, answer = send(url, "POST", "/v1/responses", body, AUTHORISED)
    assert (status, "previous_response_id" in answer["error"]["message"]) == (400, True)


def test_a_turn_too_many_says_so(url: str) -> None:
    body = {"model": "lines", "messages": [{"role": "assistant", "content": "x"}] * 2}
    status, answer = send(url, "POST", "/v1/chat/completions", body, AUTHORISED)
    assert (status, answer["error"]["message"]) == (
        400,
        "The scenario lines has 2 turns; this request is for one more.",
    )


@pytest.mark.parametrize("wrong", [{}, {"turns": []}, {"turns": [3]}, {"turns": [{"stop": "now"}]}, {"turns": [[{}]]}])
def test_a_scenario_that_cannot_be_played_is_refused(url: str, wrong: Any) -> None:
    assert send(url, "POST", "/scenarios", {"model": "wrong", **wrong})[0] == 422


def test_tokens_are_counted_on_demand_and_nothing_else_is_known(url: str) -> None:
    assert send(url, "POST", "/v1/messages/count_tokens", {"a": "x" * 100})[1]["input_tokens"] == 28
    assert send(url, "GET", "/v1/messages")[0] == 404


def test_a_turn_is_read_from_json() -> None:
    wanted = {
        "blocks": ["a", {"text": "b"}, {"thinking": "c"}, {"call": "d", "arguments": "{", "id": "e"},
                   {"search": "f", "found": [["https://a.example/", "A"]]}],
        "stop": "length", "usage": {"input": 1, "output": 2}, "pace": 0.5,
    }  # fmt: skip
    search = Search("f", (("https://a.example/", "A"),))
    blocks = (Text("a"), Text("b"), Thinking("c"), Call("d", "{", "e"), search)
    assert Turn.parse(wanted) == Turn(blocks, "length", Usage(1, 2), pace=0.5)
    with pytest.raises(BadScript, match="No block"):
        Turn.parse([{"call": "d", "argument": "{}"}])


def test_a_scenario_that_is_not_there_ends_the_process() -> None:
    command = [sys.executable, "-m", "demo.providers", "--port", "0", "--scenario", "a=nowhere:decide"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert (ended.returncode, "no scenario a=nowhere:decide" in ended.stderr) == (2, True)


def test_it_knows_nothing_of_the_product() -> None:
    code = "import sys, demo.providers.__main__; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert "demo" in loaded.stdout.split()
    assert not {"django", "runs", "journal", "pydantic_ai", "openai"} & set(loaded.stdout.split())
