"""The people of the demo: travellers who confirm or do not, customers who write again, bookkeeping, which answers late,
and two who approve."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from demo.agents.ledger_migration import REPAIR, SKIP, ledger_migration, ledger_shard
from demo.agents.support import support
from demo.agents.travel_booking import CONFIRMED, travel_booking
from runs.approvals import decide_approval
from runs.commands import answer_ask, signal_run
from runs.errors import RunsError
from runs.loops.conversation import MESSAGE
from runs.models import ENDED, Run, Status
from runs.queries import state_of
from runs.slots import Slot

CONFIRMING_OF_TEN = 7
QUICKEST, SLOWEST = 8, 40  # seconds that a traveller thinks
ANSWERED_AFTER = timedelta(seconds=90)  # so long a question stands in the inbox
BOOKKEEPING = "bookkeeping"
APPROVERS = {"ada": frozenset({"approver"}), "max": frozenset({"admin"})}
APPROVED_AFTER = timedelta(seconds=20)  # so long a booking stands in the inbox for whoever watches
FORGOTTEN_OF_TEN = 1  # journeys and tickets that nobody approves
DENIED_OF_TEN = 4  # refunds of tickets
DENIALS = (
    "two refunds within a month, offer a voucher",
    "we had this item looked at: it was fine",
    "too much for what happened, offer a voucher instead",
)
WRITING_AGAIN_OF_TEN = 3
WRITES_AFTER = timedelta(seconds=6)
WRITES_UNTIL = timedelta(minutes=10)
WORDS = (
    "I forgot to say: it was a present, so I would be glad if it went quickly.",
    "Could you send me the bill once more, too?",
)
HAS_ARRIVED = "It has arrived after all, never mind."


def let_people_act(now: datetime | None = None) -> int:
    """What the demo's people do at this moment; how many did something. Done twice, it changes nothing more."""
    now = now or datetime.now(UTC)
    waiting = Run.objects.filter(status=Status.WAITING)
    acted = [travel(run.id, now) for run in waiting.filter(agent=travel_booking.name)[:20]]
    acted += [write_again(run, now) for run in Run.objects.filter(agent=support.name).exclude(status__in=ENDED)[:20]]
    acted += [keep_books(run.id, now) for run in waiting.filter(agent=ledger_shard.name)[:20]]
    parked = Run.objects.filter(status=Status.AWAITING_APPROVAL)
    acted += [approve(run.id, now) for run in parked.filter(agent=travel_booking.name)[:20] if remembered(run.id)]
    acted += [approve(run.id, now) for run in parked.filter(agent=ledger_migration.name)[:20]]
    acted += [allow_or_deny(run.id, now) for run in parked.filter(agent=support.name)[:20] if remembered(run.id)]
    return sum(acted)


def remembered(run_id: UUID) -> bool:
    return run_id.int // 400 % 10 >= FORGOTTEN_OF_TEN


def allow_or_deny(run_id: UUID, now: datetime) -> bool:
    """A ticket's refund, by the run's id, so that a restarted demo says the same."""
    if run_id.int // 10 % 10 >= DENIED_OF_TEN:
        return approve(run_id, now)
    return approve(run_id, now, "deny", DENIALS[run_id.int % len(DENIALS)])


def approve(run_id: UUID, now: datetime, verdict: str = "approve", note: str = "looks right") -> bool:
    """One more of what waits there, by one of the two who has not said so yet."""
    for slot in state_of(run_id).unsettled():
        approval = slot.approval
        if approval is None or not approval.open or now - (approval.requested_at or now) < APPROVED_AFTER:
            continue
        for name, groups in APPROVERS.items():
            try:
                decide_approval(
                    run_id=run_id, seq=slot.seq, verdict=verdict, digest=approval.digest, note=note,
                    actor=name, groups=groups,
                )  # fmt: skip
            except RunsError:
                continue  # has approved it already, started the run, or a person was quicker
            return True
    return False


def write_again(run: Run, now: datetime) -> bool:
    """Few customers add something to a ticket that is open, once."""
    if run.id.int // 100 % 10 >= WRITING_AGAIN_OF_TEN or not WRITES_AFTER <= now - run.created_at < WRITES_UNTIL:
        return False
    state = state_of(run.id)
    if any(signal.name == MESSAGE for signal in state.signals):
        return False
    missing = any(text in state.input["text"] for text in ("arrived", "still waiting"))
    word = HAS_ARRIVED if missing else WORDS[run.id.int % len(WORDS)]
    try:
        signal_run(run_id=run.id, name=MESSAGE, payload=word, signal_id="the customer", actor="customer")
    except RunsError:
        return False  # it ended in this very moment
    return True


def travel(run_id: UUID, now: datetime) -> bool:
    slot = open_slot(run_id, "signal")
    thinks = thinking_time(run_id)
    if slot is None or thinks is None or now - slot.at < thinks:
        return False
    try:
        signal_run(run_id=run_id, name=CONFIRMED, signal_id="the traveller", actor="traveller")
    except RunsError:
        return False  # the time was up in this very moment
    return True


def thinking_time(run_id: UUID) -> timedelta | None:
    """None: this traveller never answers. The run's id decides, so that a restarted demo thinks the same."""
    if run_id.int % 10 >= CONFIRMING_OF_TEN:
        return None
    return timedelta(seconds=QUICKEST + run_id.int // 10 % (SLOWEST - QUICKEST))


def keep_books(run_id: UUID, now: datetime) -> bool:
    slot = open_slot(run_id, "ask")
    if slot is None or now - slot.at < ANSWERED_AFTER:
        return False
    try:
        answer_ask(run_id=run_id, seq=slot.seq, value=SKIP if run_id.int % 3 == 0 else REPAIR, actor=BOOKKEEPING)
    except RunsError:
        return False  # a person was quicker
    return True


def open_slot(run_id: UUID, kind: str) -> Slot | None:
    return next((slot for slot in state_of(run_id).unsettled() if slot.kind == kind), None)
