"""Something of everything that the console shows, at its most awkward: long words, odd characters, every wait."""

from __future__ import annotations

import time
import uuid

from django.contrib.auth.models import User
from django.utils import timezone

from journal.encoding import encode
from journal.entries import Kind
from journal.payloads import payload_store
from recovery.drains import advance_drains, lift_drain, order_drain
from recovery.forking import fork_run
from recovery.models import Drain
from runs.approvals import decide_approval
from runs.gates import place_gate
from runs.models import BulkAct, BulkItem, Evidence, Gate, Release, Run, SavedView, Status
from runs.short_ids import short_id
from tests.pages.conversations import support
from tests.pages.incidents import incident, url_of
from tests.pages.journals import DIGEST, Story, session
from tests.pages.replays import call_of, decided, diverged, divergence, ordered
from tests.pages.test_agents import agent, contract
from tests.pages.test_schema_form import SCHEMA
from tests.pages.test_spending import spent
from tests.pages.test_start_page import release
from tests.pages.waiting_items import TWO, asked, doubtful, item, listed, typed

LONG = "a-name-that-has-no-place-to-break-" * 5
AWKWARD = ["x" * 40, "ab" * 400, "שלום עולם " * 8, "tab\there\0null\x1b[31m", "<b>no</b>", "👩‍👩‍👧‍👦" * 30]


def awkward() -> Story:
    """Strings of every unpleasant kind wherever a page shows one."""
    story = Story()
    for text in AWKWARD:
        story.plan(thought=text, plan=[{"done": text}, {"next": text}, {text: text}, text])
        story.call(tool=text, amount=text, **{text: text})
        story.result({text: [text, {text: text}]})
        story.write(Kind.NOTE, {"text": text}, actor="olga")
        story.write(Kind.SIGNAL, {"name": text, "payload": text}, actor=AWKWARD[2])
    story.write("STRANGE", {"what": AWKWARD[1]})
    story.call()
    story.result(payload_store().put(story.run.id, "x" * 100_000))
    return story.now_is(Status.HELD, AWKWARD[1], labels={AWKWARD[0]: AWKWARD[2]})


def waiting() -> Story:
    """A run with every kind of wait open, long words in each."""
    story = Story()
    story.plan(join="first", thought=LONG)
    story.ask(f"Skip it, or repair {LONG}?", options=["skip", LONG], due=time.time() + 600)
    story.opens(Kind.TIMER, verb="set", signal=LONG)
    story.opens(Kind.TIMER, verb="set", seconds=600, due=time.time() + 600)
    child = story.spawn(agent=LONG)
    child.spawn().now_is(Status.HELD, LONG)
    child.now_is(Status.WAITING, f"waits for {LONG}")
    story.write(Kind.SIGNAL, {"name": "early", "payload": {"text": LONG}}, actor="max")
    story.write(Kind.NOTE, {"text": LONG}, actor="max")
    return story.now_is(
        Status.WAITING,
        f"asks: {LONG}",
        labels={"tenant": LONG},
        business_id=f"order:{LONG}"[:90],
        priority=3,
        deadline_at="2099-01-01T00:00:00Z",
    )


def taken_over() -> None:
    """A worker that was lost, one that took its run over, a run that ended, long rows of the list, a gate."""
    lost = session("w-lost", ended_at=timezone.now(), end_reason="process died")
    taker = session(LONG)
    story = Story().now_is(Status.RUNNING, session=taker, epoch=2)
    body = {"text": "taken over", "epoch": 2, "from": str(lost.id), "session": str(taker.id)}
    story.write("NOTE", body, actor="system")
    Story().now_is(Status.DONE, ended_at=timezone.now())
    Story().now_is(Status.QUEUED, labels={"x": "y" * 200}, business_id="customer:" + "c" * 190, agent="a" * 80)
    place_gate(scope="tool:refund", reason=LONG, actor="olga")


def approvals() -> dict[str, str]:
    """Items that wait for somebody's signature: one with a deadline, one with a question back."""
    story, seq = asked(TWO | {"ttl": 60.0}, expires=4_000_000_000.0)
    questioned, at = asked(TWO)
    decide_approval(
        run_id=questioned.run.id, seq=at, verdict="ask", digest=DIGEST, note=LONG, actor="ada",
        groups=frozenset({"approver"}),
    )  # fmt: skip
    listed(questioned)
    return {"asked": item(story, seq), "back": item(questioned, at)}


def doubts() -> dict[str, str]:
    """Items of which nobody knows whether they happened: one with a late result, one of no key; and a question."""
    doubt, at = doubtful()
    mail, letter = doubtful("mail", "unkeyed")
    body = encode({"outcome": "succeeded", "result": {"id": LONG, "amount_cents": 1}, "source": "worker"})
    late = Evidence.objects.create(
        run=doubt.run, step=1, epoch=1, session=session("w7"), body=body, outcome="succeeded"
    )
    ask = Story()
    number = ask.ask("x" * 300)
    listed(ask.now_is(Status.WAITING, f"asks: {'x' * 300}"))
    return {"doubt": item(doubt, at), "mail": item(mail, letter), "late": str(late.pk), "question": item(ask, number)}


def agents() -> dict[str, str]:
    """Two agents with forms, a run with two questions, a gate."""
    release(takes=SCHEMA)
    agent("other", [contract("payout", limit={"at_once": 3, "key": "customer_id"})], input=SCHEMA)
    story = Story()
    story.call("mail", to="a@example.org")
    form, choice = story.ask("Where to?", SCHEMA), story.ask("Skip it?", options=["skip", "repair"])
    story.now_is(Status.RUNNING, session=session("w1"), awaits_signals=["go"])
    gate = Gate.objects.create(scope="tool:payout", reason="the bank asks", actor="max")
    return {"acted": story.url, "form": str(form), "choice": str(choice), "gate": str(gate.pk)}


def kept() -> dict[str, str]:
    """A bulk act half done, and a saved view."""
    act = BulkAct.objects.create(verb="hold", query="", reason=LONG, actor="max", door="page")
    for outcome, said in (("done", ""), ("skipped", LONG), ("failed", LONG), (None, "")):
        BulkItem.objects.create(bulk=act, run=Story().run, outcome=outcome, said=said)
    view = SavedView.objects.create(owner=User.objects.get(username="max"), name=LONG[:60], query="status=held")
    return {"bulk": str(act.pk), "view": str(view.pk), "judged": str(judged().pk)}


def judged() -> BulkAct:
    """Runs judged for a move, some of which may."""
    given = {"reason": LONG, "actor": "max", "door": "page", "release": Story().run.release}
    act = BulkAct.objects.create(verb="judge", query="", **given)
    for outcome, said in (("done", ""), ("skipped", f"Fork needed: {LONG}"), ("failed", LONG), (None, "")):
        BulkItem.objects.create(bulk=act, run=Story().run, outcome=outcome, said=said)
    return act


def releases() -> dict[str, str]:
    """A current release, a canary with other tools and a longer prompt, one that nobody serves and somebody needs."""
    old = {"agent": "desk", "version": "7", "driver": "flow", "tools": [contract("pay")], "prompt": "Pay it back.\n"}
    new = old | {
        "version": LONG, "tools": [contract("pay", timeout=5.0), contract(LONG, doc=LONG)], "model": {"name": LONG},
        "prompt": f"Pay it back.\n{LONG}\n{AWKWARD[2]}\n", "budget": {"steps": 5}, "input": SCHEMA,
    }  # fmt: skip
    made = {}
    for name, content, stage in (("current", old, "current"), ("canary", new, "canary"), ("lost", old, "retiring")):
        version = content["version"] if name != "lost" else "6"
        share = 10 if name == "canary" else 0
        given = {"content": content | {"version": version}, "stage": stage, "share": share, "staged_by": LONG[:60]}
        made[name] = Release.objects.create(id=uuid.uuid4().hex * 2, agent="desk", version=version, **given)
    ids = [made["current"].id, made["canary"].id]
    for worker in ("a", "b"):
        session(worker, serves=ids, codes=dict.fromkeys(ids, worker * 64), region=LONG[:40] + worker)
    story = Story().now_is(Status.WAITING_FOR_VERSION, "waits for a worker that serves desk@6", agent="desk")
    Run.objects.filter(id=story.run.id).update(release=made["lost"])
    return {"release": made["current"].id, "canary": made["canary"].id, "other": made["lost"].id}


def drains() -> dict[str, str]:
    """One under way with a run in a call, one whose deadline passed with a run still open; both with long words."""
    worker, other = session("busy", region=LONG[:60]), session(LONG[:100])
    for held in (worker, other, other):
        story = Story()
        story.call(tool=LONG[:90], order_id="o-1")
        story.now_is(Status.RUNNING, session=held, epoch=1)
    handed = order_drain(scope=f"worker:{other.name}", timeout=60, reason=LONG, actor="olga")
    Drain.objects.filter(pk=handed.pk).update(deadline_at=timezone.now())
    advance_drains()
    lifted = order_drain(scope="agent:nobody", timeout=60, reason="a drill", actor="olga")
    lift_drain(drain_id=lifted.pk, reason="enough", actor="max")
    drain = order_drain(scope=f"region:{worker.region}", timeout=3600, reason=LONG, actor="olga")
    return {"drain": str(drain.pk), "handed": str(handed.pk)}


def families() -> dict[str, str]:
    """A run that was decided again, with long words; its fork; and one that waits to be decided again."""
    story = diverged()
    decided(
        story,
        divergence(2, {"thought": LONG}, {"thought": LONG * 2}, "text", LONG),
        divergence(6, call_of("refund", note=LONG), call_of("refund", note=f"{LONG} {AWKWARD[2]}"), says=LONG),
        divergence(9, call_of(LONG), None, "missing_tool", f"there is no tool {LONG} any more."),
        stopped_at=9, stopped_why=LONG,
    )  # fmt: skip
    made = fork_run(run_id=story.run.id, at=5, reason=LONG, actor="max")
    fork_run(run_id=made.id, at=4, reason="again", actor="max")
    waits = Story()
    ordered(waits)
    return {"replayed": story.url, "fork": f"/runs/{short_id(made.id)}", "ordered": waits.url}


def everything() -> dict[str, str]:
    """By a name: addresses of runs and of items, and numbers of what is counted."""
    taken_over()
    places = approvals() | doubts() | agents() | kept() | families() | releases() | drains()
    spent(LONG)
    spent("support", cost=None, model=LONG, tokens_in=10**12)
    spent("support", ago=3, lost=True)
    talk = support()
    places |= {"chat": talk.url, "asked_at": str(talk.last)}
    places |= {"incident": url_of(incident()), "awkward": awkward().url, "waiting": waiting().url}
    typed()  # changes the release that every story looks for
    return places
