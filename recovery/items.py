"""One thing that waits for a person, whole: what would be done, what it is bound to, what happened before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from django.db import connection
from django.utils import timezone

from journal.encoding import decode
from journal.entries import Entry, Kind
from journal.payloads import payload_store
from journal.read import read_entries
from journal.verify import VerifiedMark, verify_from_mark
from recovery import wording
from recovery.history import Before, happened_before
from runs.errors import IntentNotFound
from runs.models import DOUBT_STANDS, ENDED, Evidence, Run
from runs.relatives import InDatabase, as_of_now
from runs.repeated import Repeated, repeated_in
from runs.short_ids import short_id
from runs.slots import Repeat, Slot
from runs.state import RunState, fold
from runs.values import line

LONGEST_TITLE = 120
NEVER = ("failed", "denied", "cancelled")  # as it stands by now, of what was to be expected
SETTLING = ("happened", "never_happened", "abort")


@dataclass(frozen=True, slots=True)
class Argument:
    """`meant`: an amount in minor units as money."""

    name: str
    value: Any
    meant: str
    weighty: bool


@dataclass(frozen=True, slots=True)
class Late:
    """A result that came after its worker had lost the run."""

    id: int
    outcome: str
    epoch: int
    worker: str
    at: datetime
    body: Mapping[str, Any]
    adopted_seq: int | None

    @property
    def adoptable(self) -> bool:
        """Whether it says what became of the call."""
        return self.adopted_seq is None and self.outcome in ("succeeded", "failed")


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody, or a machine, said became of it."""

    entry: Entry
    word: str
    hue: str
    evidence: str
    external_id: str
    file: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Proof:
    """Where the digest on the page stands in the journal, and whether the journal up to there is what was written."""

    digest: str
    seqs: Sequence[int]
    mark: VerifiedMark

    @property
    def holds(self) -> bool:
        return bool(self.seqs) and self.mark.seq >= max(self.seqs)

    @property
    def told(self) -> str:
        return ", ".join(map(str, self.seqs))


class ItemPage:
    """The item of entry `seq` of a run: an intent, or a question of its agent. Raises IntentNotFound."""

    def __init__(self, run: Run, seq: int) -> None:
        self.run = run
        self.entries: list[Entry] = [] if run.input is not None else read_entries(connection, run.id)
        self.state: RunState = fold(run.id, self.entries)
        found = (s for s in self.state.slots.values() if s.seq == seq and s.kind in ("call", "ask"))
        slot = next(found, None)
        if slot is None:
            raise IntentNotFound(f"(seq {seq})")
        self.slot: Slot = slot

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Of its row in a list."""
        return f"{self.run.id.hex}-{self.slot.seq}"

    @property
    def short(self) -> str:
        return short_id(self.run.id)

    @property
    def last_seq(self) -> int:
        return self.state.seq

    @cached_property
    def phase(self) -> str:
        """Which partial shows it: ask, answered, settled, record, approval, doubt, looking or pending."""
        slot, ended = self.slot, self.run.status in ENDED
        if slot.kind == "ask":
            return "answered" if slot.settled or ended else "ask"
        if slot.settled:
            return "settled"
        if ended:
            return "record" if slot.in_doubt else "settled"
        if slot.state == "awaiting_approval":
            return "approval"
        if slot.state == "in_doubt":
            return "doubt" if self.waits_for_a_person else "looking"
        return "pending"

    @property
    def waits_for_a_person(self) -> bool:
        driven = self.run.session is not None and self.run.session.ended_at is None
        return not driven and self.run.status in DOUBT_STANDS

    @property
    def head_template(self) -> str:
        return f"recovery/item/head_{self.phase}.html"

    @property
    def notes_template(self) -> list[str]:
        return [f"recovery/item/notes_{self.phase}.html", "recovery/item/notes_settled.html"]

    @property
    def acts_template(self) -> list[str]:
        return [f"recovery/item/acts_{self.phase}.html", "recovery/item/acts_settled.html"]

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """What the run's row says of it; empty once it is not open any more."""
        return next((r for r in self.run.intents if r.get("seq") == self.slot.seq), {})

    @property
    def asked_by(self) -> str:
        return str(self.record.get("asked_by") or self.state.started_by)

    @property
    def contract(self) -> Mapping[str, Any]:
        """The tool as the run's release holds it; empty where it does not."""
        tools = self.run.release.contract.get("tools", [])
        return next((tool for tool in tools if tool["name"] == self.slot.tool), {})

    @property
    def can_probe(self) -> bool:
        return bool(self.contract.get("probe"))

    @property
    def title(self) -> str:
        """What the call would do, in one sentence: for edited arguments, as the tool says it of those."""
        asked = self.slot.approval.requested_seq if self.slot.approval and self.slot.edited else 0
        said = self.entries[asked - 1].body.get("summary") if asked else self.slot.body.get("summary")
        return str(said or f"Call {self.slot.tool}")

    @property
    def named(self) -> str:
        """The item where it stands alone, on another page maybe: a message outlives the page that it was for."""
        return f"{self.short} step {self.slot.step}, {line(self.title, LONGEST_TITLE)}"

    @property
    def count_told(self) -> str:
        approval = self.slot.approval
        quorum = approval.policy.quorum if approval else 1
        return f"Approval {len(approval.grants) + 1 if approval else 1} of {quorum}"

    @property
    def settled_told(self) -> str:
        return wording.OUTCOMES.get(self.slot.outcome or "", "Settled") if self.slot.outcome else "The run has ended"

    @property
    def settled_hue(self) -> str:
        return {"succeeded": "ok", "failed": "failed"}.get(self.slot.outcome or "", "off")

    @property
    def effect_told(self) -> str:
        return wording.EFFECTS.get(self.slot.effect, "")

    @property
    def looking_told(self) -> str:
        """What a worker does about an outcome that is not known."""
        return wording.LOOKING.get(self.slot.effect, "")

    @property
    def where_to_look(self) -> str:
        sent = self.slot.attempts[-1].at if self.slot.attempts else self.slot.at
        since = f"from {wording.clock(sent)} on"
        if self.slot.effect == "unkeyed":
            return (
                f"Where {self.slot.tool} acts, {since}. The other side does not know the key: look for these arguments."
            )
        return (
            f"Where {self.slot.tool} acts, {since}. An effect that carries key {self.slot.key} means that it happened."
        )

    @cached_property
    def repeats(self) -> list[tuple[Repeat, Repeat]]:
        """What of relatives this one would repeat: as it was named when it was asked for, and by now."""
        named = self.slot.approval.repeats if self.slot.approval is not None else ()
        return [(repeat, as_of_now(repeat, InDatabase(None))) for repeat in named]

    @property
    def outdated(self) -> bool:
        """More of that has happened: an approval is asked for anew before anything is sent."""
        return any(now.weight > named.weight and now.outcome not in NEVER for named, now in self.repeats)

    @property
    def reply(self) -> Entry | None:
        """The answer to the last question back, while the call waits for its decision."""
        own = [e for e in self.entries if e.step == self.slot.step and e.kind == Kind.APPROVAL]
        return own[-1] if own and own[-1].body.get("verdict") == "answered" else None

    # -- what it is bound to ----------------------------------------------------------------------------------------

    @cached_property
    def args(self) -> dict[str, Any]:
        """What is sent, whole, wherever it is kept: this is what is signed."""
        return dict(payload_store().resolve({"args": self.slot.args})["args"])

    @cached_property
    def asked_args(self) -> dict[str, Any]:
        """What the agent asked for, where a person edited it."""
        return dict(payload_store().resolve({"args": self.slot.asked_args})["args"])

    @property
    def lines(self) -> list[Argument]:
        return [
            Argument(name, value, wording.weight_of(name, value), wording.is_weighty(name))
            for name, value in self.args.items()
        ]

    @property
    def changed(self) -> list[tuple[str, Any, Any]]:
        """Name, the agent's value, the person's."""
        if self.slot.edited is None:
            return []
        names = wording.differences(self.asked_args, self.args)
        return [(name, self.asked_args.get(name), self.args.get(name)) for name in names]

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """What the tool says matters in the arguments, where that is less than all of them."""
        approval = self.slot.approval
        named = approval.fields if approval is not None else None
        return named if named is not None and named != self.args else None

    @property
    def digest(self) -> str:
        """What an approval binds to now."""
        return self.slot.approval.digest if self.slot.approval else self.slot.digest

    @cached_property
    def proof(self) -> Proof:
        own = [e for e in self.entries if e.step == self.slot.step and e.kind in (Kind.TOOL_CALL, Kind.APPROVAL)]
        seqs = [e.seq for e in own if e.body.get("digest") == self.digest]
        return Proof(self.digest, seqs, verify_from_mark(self.run.id))

    # -- time -------------------------------------------------------------------------------------------------------

    @property
    def deadline(self) -> datetime | None:
        approval = self.slot.approval
        due = self.slot.due if self.slot.kind == "ask" else approval.expires if approval else None
        return None if due is None else datetime.fromtimestamp(due, UTC)

    @property
    def who_may_sign(self) -> str:
        approval = self.slot.approval
        return wording.who_may_sign(approval.policy, self.asked_by) if approval else ""

    @property
    def standing(self) -> str:
        return wording.standing(self.slot.approval) if self.slot.approval else ""

    @property
    def if_nobody(self) -> str:
        return wording.if_nobody_answers(self.slot.approval, self.run.agent) if self.slot.approval else ""

    @property
    def landed_at(self) -> datetime | None:
        """Until when what was sent last may still act, where no key makes another send safe before that."""
        if not self.slot.attempts or self.slot.effect == "read":
            return None
        first, last = self.slot.attempts[0].at, self.slot.attempts[-1].at
        remembered = timezone.now() - first < timedelta(seconds=float(self.contract.get("key_ttl") or 0.0))
        if self.slot.effect == "keyed" and remembered:
            return None
        return last + timedelta(seconds=float(self.contract.get("max_in_flight") or 0.0))

    # -- what happened ----------------------------------------------------------------------------------------------

    @property
    def before(self) -> list[Before]:
        return happened_before(self.state, self.slot, self.entries)

    @cached_property
    def answers(self) -> list[Entry]:
        """What the tool said when it was asked by key, raw, the last one first."""
        own = [e for e in self.entries if e.step == self.slot.step and e.kind in (Kind.RECONCILE, Kind.OBS)]
        return [e for e in reversed(own) if e.body.get("verdict") == "undecided" or e.body.get("source") == "probe"]

    @property
    def asked_the_tool(self) -> Entry | None:
        """The last order to ask the tool, while it has not answered."""
        own = [e for e in self.entries if e.step == self.slot.step and e.kind == Kind.RECONCILE]
        orders = [e for e in own if e.body.get("verdict") == "probe"]
        return orders[-1] if orders and self.slot.probe_asked and not self.slot.settled else None

    @cached_property
    def verdicts(self) -> list[Said]:
        own = [e for e in self.entries if e.step == self.slot.step and e.kind == Kind.RECONCILE]
        return [said_in(e) for e in own if e.body.get("verdict") in SETTLING]

    @cached_property
    def repeated(self) -> list[Repeated]:
        """This call, if it was done twice."""
        return repeated_in(self.run.id, [self.slot])

    @cached_property
    def late(self) -> list[Late]:
        rows = Evidence.objects.filter(run=self.run, step=self.slot.step).select_related("session").order_by("id")
        return [
            Late(r.pk, r.outcome, r.epoch, r.session.name if r.session else "a worker", r.recorded_at,
                 decode(bytes(r.body)), r.adopted_seq)
            for r in rows
        ]  # fmt: skip


def said_in(e: Entry) -> Said:
    word, hue = VERDICTS.get(str(e.body.get("verdict")), (str(e.body.get("verdict")), "off"))
    evidence = e.body.get("evidence")
    if isinstance(evidence, Mapping):  # the engine's own: it names the row of the late result
        evidence = f"late result {evidence.get('evidence')}, from epoch {evidence.get('epoch')}"
    file = e.body.get("file")
    return Said(
        e,
        word,
        hue,
        str(evidence or ""),
        str(e.body.get("external_id") or ""),
        file if isinstance(file, Mapping) else None,
    )


VERDICTS = {
    "happened": ("It happened", "ok"), "never_happened": ("It never happened", "warn"), "abort": ("Aborted", "off"),
}  # fmt: skip
