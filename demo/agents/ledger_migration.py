"""An old ledger is moved to the new books: sixty batches in shards side by side, slowly, and one asks for a person."""

from collections.abc import Generator
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from pydantic import Field

from demo.agents import payments_api
from demo.agents.refund_desk import BOOKKEEPING, mail
from runs.sdk import Ask, Call, CallFailed, Policy, RunView, Sleep, Spawn, ToolContext, flow, tool

SHARDS = 4
PAUSE = 4.0
SKIP, REPAIR = "skip", "repair"
CUTOVER = Policy(quorum=2, ttl=7 * 86_400, remind_every=86_400)  # it cannot be undone: two people agree to it


class Book(TypedDict):
    ledger: str
    batches: int
    total_cents: int


class Batch(TypedDict):
    """`sum_cents`: what its entries come to; `total_cents`: what its last line says."""

    batch: int
    entries: int
    sum_cents: int
    total_cents: int


class Entered(TypedDict):
    id: str
    batch: int
    at: str
    replayed: NotRequired[bool]


@tool(effect="read", timeout=20)
def read_book(ctx: ToolContext, ledger: str) -> Book:
    """How many batches an old ledger has, and what they come to."""
    book: Book = payments_api.get(f"/books/{ledger}")
    return book


@tool(effect="read", timeout=20)
def read_batch(ctx: ToolContext, ledger: str, batch: int) -> Batch:
    """One batch of the old ledger."""
    found: Batch = payments_api.get(f"/books/{ledger}/{batch}")
    return found


@tool(effect="keyed", probe=payments_api.find_by_key, timeout=20)
def enter(ctx: ToolContext, ledger: str, batch: int, correction_cents: int = 0) -> Entered:
    """Enter a batch into the new books. Refused when it does not add up."""
    done: Entered = payments_api.post(ctx, "/enter", ledger=ledger, batch=batch, correction_cents=correction_cents)
    return done


class CutOver(TypedDict):
    id: str
    ledger: str
    at: str
    replayed: NotRequired[bool]


@tool(
    effect="keyed",
    probe=payments_api.find_by_key,
    approval=CUTOVER,
    summary=lambda args: (
        f"Close the old ledger {args['ledger']} for good: {args['entered']} batches are in the new books"
    ),
    timeout=20,
)
def cut_over(ctx: ToolContext, ledger: str, entered: int) -> CutOver:
    """Close the old ledger: from then on only the new books count."""
    done: CutOver = payments_api.post(ctx, "/cutover", ledger=ledger, entered=entered)
    return done


class Migration(TypedDict):
    ledger: Annotated[str, Field(description="An old ledger, by year and quarter: 2019-q3.")]
    shards: NotRequired[Annotated[int, Field(ge=1, le=60, description="Side by side; 4 without.")]]
    pause: NotRequired[Annotated[float, Field(ge=0, description="Seconds between two batches; 4 without.")]]


@flow(name="ledger-migration", version="2", tools=[read_book, cut_over, mail], input=Migration)
def ledger_migration(run: RunView) -> Generator[Any, Any, dict[str, Any]]:
    """Input: `ledger` (as 2019-q3); `shards` (4) and `pause` (4 seconds between batches) where they differ."""
    ledger, pause = run.input["ledger"], run.input.get("pause", PAUSE)
    book = yield Call(read_book, ledger=ledger, thought=f"How big is {ledger}?")
    parts = list(shares(book["batches"], run.input.get("shards", SHARDS)))
    thought = f"{book['batches']} batches, {len(parts)} shards: one that has to wait stops no other"
    plan = [*({"next": f"batches {first} to {last}"} for first, last in parts), {"later": "close the old ledger"}]
    try:
        moved = yield [
            Spawn(ledger_shard.name, of_shard(ledger, first, last, pause), thought=thought, plan=plan)
            for first, last in parts
        ]
    except CallFailed as failed:
        done = [child.result for child in run.children if child.outcome == "succeeded"]
        return summary(book, done) | {"unfinished": str(failed)}
    report = summary(book, moved)
    try:
        yield Call(cut_over, ledger=ledger, entered=report["entered"], thought="All have ended: close the old ledger")
    except CallFailed as refused:
        return report | {"cut_over": False, "why": refused.reason}
    yield Call(mail, to=BOOKKEEPING, subject=f"{ledger} is moved", body=words(report), thought="It is closed: report")
    return report | {"cut_over": True}


def of_shard(ledger: str, first: int, last: int, pause: float) -> dict[str, Any]:
    return {"ledger": ledger, "first": first, "last": last, "pause": pause}


@flow(name="ledger-shard", version="2", tools=[read_batch, enter])
def ledger_shard(run: RunView) -> Generator[Any, Any, dict[str, Any]]:
    """Input: `ledger`, `first` and `last` batch, `pause` in seconds."""
    ledger, first, last = run.input["ledger"], run.input["first"], run.input["last"]
    entered: list[int] = []
    repaired: list[int] = []
    skipped: list[int] = []
    for number in range(first, last + 1):
        batch = yield Call(read_batch, ledger=ledger, batch=number, plan=progress(first, number, last))
        missing = batch["total_cents"] - batch["sum_cents"]
        thought = f"Batch {number} adds up"
        if missing:
            if (yield from ask(ledger, batch, missing)) == SKIP:
                skipped.append(number)
                continue
            repaired.append(number)
            thought = f"Batch {number} with a correction"
        yield Call(enter, ledger=ledger, batch=number, correction_cents=missing, thought=thought)
        entered.append(number)
        if number < last:
            yield Sleep(run.input["pause"])
    return {"entered": len(entered), "repaired": repaired, "skipped": skipped}


def ask(ledger: str, batch: Batch, missing: int) -> Generator[Any, Any, str]:
    question = (
        f"Batch {batch['batch']} of {ledger} does not add up: its {batch['entries']} entries come to"
        f" {batch['sum_cents'] / 100:.2f}, its last line says {batch['total_cents'] / 100:.2f}."
        f" Skip it, or enter it with a correction of {missing / 100:.2f}?"
    )
    answer: str = yield Ask(
        question, type=Literal["skip", "repair"], options=[SKIP, REPAIR], thought="This is not for me to decide: ask"
    )
    return answer


def shares(batches: int, shards: int) -> Generator[tuple[int, int]]:
    """First and last batch of each shard; the first ones are longer where it does not divide."""
    first = 1
    for shard in range(shards):
        last = first + batches // shards + (shard < batches % shards) - 1
        yield first, last
        first = last + 1


def progress(first: int, now: int, last: int) -> list[dict[str, str]]:
    done = [{"done": f"batches {first} to {now - 1}"}] if now > first else []
    rest = [{"later": f"batches {now + 1} to {last}"}] if now < last else []
    return [*done, {"next": f"batch {now}"}, *rest]


def summary(book: Book, shards: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "ledger": book["ledger"],
        "entered": sum(shard["entered"] for shard in shards),
        "repaired": [number for shard in shards for number in shard["repaired"]],
        "skipped": [number for shard in shards for number in shard["skipped"]],
    }


def words(report: dict[str, Any]) -> str:
    return f"{report['entered']} batches entered; repaired: {report['repaired']}; skipped: {report['skipped']}."
