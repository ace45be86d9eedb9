"""Random interleavings of appends, resends, claims and people, against a model of one run in forty lines."""

import random
from typing import Any
from uuid import UUID

import psycopg
import pytest

from journal.committer import Append
from journal.encoding import encode
from journal.entries import STEERING, Draft
from journal.lane import Lane
from tests.journal.cast import Told, append, call, draft, new_run, obs, person, send
from tests.journal.oracle import check_journal

type Conn = psycopg.Connection[Any]


class Model:
    """One run as the contract tells it."""

    def __init__(self) -> None:
        self.epoch = self.seq = self.steering = self.number = 0
        self.last: Told | None = None
        self.held = False
        self.settled: set[int] = set()
        self.requests: dict[str, Told] = {}
        self.rows: list[tuple[int, str, int, bytes]] = []

    def put(self, entries: list[Draft]) -> tuple[int, int]:
        first = self.seq + 1
        for entry in entries:
            self.seq += 1
            self.rows.append((self.seq, entry.kind, self.epoch, encode(entry.body)))
            self.steering = self.seq if entry.kind in STEERING else self.steering
            self.settled |= {entry.settles} if entry.settles else set()
        return first, self.seq

    def append(self, a: Append) -> Told | None:
        if self.held:
            return ("busy", None, None)
        if a.epoch != self.epoch:
            return ("lost", None, None)
        if a.number <= self.number:
            return self.last if a.number == self.number else ("already", None, None)
        refused = self.steering > a.seen and any(e.decision for e in a.entries)
        accepted = [e for e in a.entries if not (refused and e.decision)]
        if any(e.settles in self.settled for e in accepted if e.settles):
            return ("settled", None, None)
        if not accepted:
            return ("refused", None, None)
        self.number, (first, last) = a.number, self.put(accepted)
        self.last = ("refused" if refused else "already", first, last)
        return ("refused" if refused else "written", first, last)

    def person(self, request: str, entries: list[Draft]) -> Told:
        if request in self.requests:
            return ("already", *self.requests[request][1:])
        if any(e.settles in self.settled for e in entries if e.settles):
            return ("settled", None, None)
        self.requests[request] = ("written", *self.put(entries))
        return self.requests[request]

    def claim(self) -> None:
        self.epoch, self.number, self.last = self.epoch + 1, 0, None


class World:
    """Runs and their models, and a person whose transaction may be open."""

    def __init__(self, conn: Conn, other: Conn, lane: Lane, dice: random.Random) -> None:
        self.conn, self.other, self.lane, self.dice = conn, other, lane, dice
        self.models: dict[UUID, Model] = {new_run(conn, 0): Model() for _ in range(5)}
        self.runs = list(self.models)
        self.sent: list[list[Append]] = []
        self.holder: tuple[UUID, str, list[Draft]] | None = None

    def some_entries(self) -> list[Draft]:
        outcome = obs(self.dice.randint(1, 40))
        merged = [outcome, Draft("PLAN", {}, decision=True), call(2)]
        return self.dice.choice([[outcome], [draft("NOTE")], [call(1)], merged, [draft("APPROVAL")]])

    def append(self, *, again: bool) -> None:
        batch = []
        for run in self.dice.sample(self.runs, self.dice.randint(1, 5)):
            model = self.models[run]
            epoch, seen = model.epoch - self.dice.choice([0, 0, 0, 1]), max(0, model.seq - self.dice.choice([0, 0, 2]))
            batch.append(append(run, epoch, model.number + 1, seen, *self.some_entries()))
        if again and self.sent:
            batch = self.dice.choice(self.sent[-3:])  # the answer was lost, the same batch comes again
        self.sent.append(batch)
        assert send(self.lane, *batch) == [self.models[a.run_id].append(a) for a in batch]

    def claim(self, run: UUID) -> None:
        if not self.models[run].held:
            self.conn.execute("SELECT * FROM journal_raise_epochs_v1(%s)", ([run],))
            self.models[run].claim()

    def act(self, run: UUID, *, hold: bool) -> None:
        """A person's open transaction ends, either way, before the next begins."""
        if self.holder is not None:
            self.models[self.holder[0]].held = False
            if self.dice.random() < 0.5:
                self.other.commit()
                self.models[self.holder[0]].person(*self.holder[1:])
            else:
                self.other.rollback()
            self.holder = None
            return
        settling = [draft("RECONCILE"), obs(self.dice.randint(1, 40))]
        entries = self.dice.choice([[draft("SIGNAL")], settling, [draft("NOTE")]])
        request = f"q{self.dice.randint(1, 30)}"
        if not hold:
            assert person(self.conn, run, request, *entries) == self.models[run].person(request, entries)
            return
        person(self.other, run, request, *entries)
        self.models[run].held, self.holder = True, (run, request, entries)


@pytest.mark.parametrize("seed", range(6))
def test_random_interleavings_do_what_the_model_says(conn: Conn, journal_dsn: str, lane: Lane, seed: int) -> None:
    dice = random.Random(seed)
    with psycopg.connect(journal_dsn) as other:
        world = World(conn, other, lane, dice)
        for _ in range(200):
            run = dice.choice(world.runs)
            match dice.choice(["append"] * 5 + ["resend", "claim", "claim", "person", "hold"]):
                case "append":
                    world.append(again=False)
                case "resend":
                    world.append(again=True)
                case "claim":
                    world.claim(run)
                case "person":
                    world.act(run, hold=False)
                case "hold":
                    world.act(run, hold=True)
        other.rollback()
    for run, model in world.models.items():
        assert [(row[0], row[1], row[5], row[9]) for row in check_journal(conn, run)] == model.rows
