"""What deciding journals again has found, on a screen: for a person and for a script."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from recovery.redecided import DIVERGED, INCOMPLETE, Result, Told
from recovery.replay_batch import Answer, Spent, name_of_result
from runs.short_ids import short_id
from terminal.command import DONE, FAILED, REFUSED
from terminal.screen import Screen, Styled

LONGEST_SHOWN = 2_000  # characters of a move at a terminal


@dataclass(slots=True)
class Tally:
    """Runs by what became of them, and what was spent. `strict`: other words for the same moves count."""

    strict: bool
    same: int = 0
    diverged: int = 0
    undecided: int = 0
    asked: int = 0
    tokens: float = 0.0
    cost: float = 0.0

    def add(self, answer: Answer) -> None:
        result = answer.result
        if result is None:
            self.undecided += 1
            return
        if result["verdict"] == DIVERGED or (self.strict and result["divergences"]):
            self.diverged += 1
        elif result["verdict"] == INCOMPLETE:
            self.undecided += 1
        else:
            self.same += 1
        if (model := result["model"]) is not None:
            self.asked += model["requests"]
            self.tokens += model["tokens"]
            self.cost += model["cost"]

    @property
    def code(self) -> int:
        return FAILED if self.diverged else REFUSED if self.undecided else DONE

    @property
    def sentence(self) -> str:
        runs = self.same + self.diverged + self.undecided
        parts = [f"{self.same:,} decided the same", f"{self.diverged:,} otherwise"]
        parts += [f"{self.undecided:,} could not be decided again"] if self.undecided else []
        return f"{runs:,} run{'' if runs == 1 else 's'}: {', '.join(parts)}"


def tell_price(screen: Screen, spent: Spent) -> None:
    runs = "the run" if spent.runs == 1 else f"the {spent.runs:,} runs"
    was = f"{spent.tokens:,} tokens and a cost of {spent.cost:,.4g}"
    screen.note(f"The model is asked again, and costs again: what is recorded of {runs} is {was}.")


def tell_bill(screen: Screen, tally: Tally) -> None:
    screen.note(f"Asked {tally.asked:,} times: {tally.tokens:,.0f} tokens, a cost of {tally.cost:,.4g}.")


def tell_one(screen: Screen, answer: Answer, as_json: bool) -> None:
    if as_json:
        screen.json(document(answer))
        return
    result = answer.result
    if result is None:
        screen.note(f"{short_id(answer.run_id)} could not be decided again: {answer.error}")
        return
    if not screen.terminal:
        tell_lines(screen, answer, as_json=False)
        return
    verdict = Styled(result["verdict"], "green" if result["verdict"] == "same" else "bold red")
    screen.say(short_id(answer.run_id), "under", name_of_result(result), verdict)
    screen.say(f"{result['compared']} of {result['of']} decisions compared, {result['calls']} calls answered from the "
               "journal, nothing sent")  # fmt: skip
    if result["stopped_at"] is not None:
        screen.say(f"stopped at entry {result['stopped_at']}: {result['stopped_why']}")
    for each in divergences_of(result):
        tell_divergence(screen, each)
    if result["more"]:
        screen.say(f"and {result['more']:,} more")


def tell_divergence(screen: Screen, each: Told) -> None:
    screen.say("")
    screen.say(
        Styled(f"entry {each['seq']}", "bold"),
        Styled(each["kind"].replace("_", " "), "red" if each["effect"] else "dim"),
    )
    screen.say(" ", each["says"])
    screen.say("  recorded ", cut(each["recorded"]))
    screen.say("  decided  ", cut(each["attempted"]))


def tell_lines(screen: Screen, answer: Answer, as_json: bool) -> None:
    """One line a run as JSON, or one a difference, for a script and for many runs."""
    if as_json:
        screen.line(json.dumps(document(answer), allow_nan=False))
        return
    run = short_id(answer.run_id) if screen.terminal else str(answer.run_id)
    result = answer.result
    if result is None:
        screen.note(f"{run} could not be decided again: {answer.error}")
        return
    if result["verdict"] == INCOMPLETE:
        screen.note(f"{run} was decided up to entry {result['stopped_at']} only: {result['stopped_why']}")
    for each in divergences_of(result):
        recorded, attempted = json.dumps(each["recorded"]), json.dumps(each["attempted"])
        screen.say(run, each["seq"], each["kind"], each["says"], recorded, attempted)


def divergences_of(result: Result) -> list[Told]:
    """The model's, asked again, behind the others."""
    model = result["model"]
    return result["divergences"] + (model["divergences"] if model is not None else [])


def document(answer: Answer) -> dict[str, Any]:
    return {"run_id": str(answer.run_id), "error": answer.error or None, "result": answer.result}


def cut(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
