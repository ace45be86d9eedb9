"""Medians, ranges and the targets, as text."""

from __future__ import annotations

from statistics import median

Found = dict[str, dict[str, list[float]]]  # trial, then number, then one value a repetition


def cell(values: list[float]) -> str:
    """Median, and the range if there was more than one repetition."""
    if len(values) == 1:
        return short(values[0])
    return f"{short(median(values))} ({short(min(values))}–{short(max(values))})"


def short(number: float) -> str:
    size = abs(number)
    return f"{number:,.0f}" if size >= 100 else f"{number:.1f}" if size >= 10 else f"{number:.3g}"


def table(found: Found) -> str:
    lines = []
    for trial, numbers in found.items():
        lines.append(f"\n{trial} ({len(next(iter(numbers.values())))} repetitions)")
        lines += [f"  {what:<24}{cell(values)}" for what, values in numbers.items()]
    return "\n".join(lines)


def targets(found: Found) -> str:
    """The targets that these trials can judge: what was asked, what was seen."""
    said = []

    def say(what: str, wanted: float, seen: float, least: bool = False) -> None:
        met = seen >= wanted if least else seen <= wanted
        word, sign = "reached" if met else "MISSED", "≥" if least else "≤"
        said.append(f"  {word:<9}{what}: {sign} {wanted:g}, seen {short(seen)}")

    for flying, times in ((1, 3), (10, 6), (50, 10)):
        if f"dbos @{flying}" in found:
            ours, theirs = (found[f"{side} @{flying}"]["steps/s"] for side in ("holdfast", "dbos"))
            say(f"× DBOS's steps a second @{flying}", times, median(ours) / median(theirs), least=True)
    for trial, what, wanted in (
        ("holdfast @1", "COMMITs", 1.3), ("holdfast @50", "COMMITs", 0.1), ("holdfast @50", "COMMITs, steps only", 0.1),
        ("holdfast @50", "CPU ms", 0.5), ("holdfast, a step more", "WAL B a step more", 1300),
        ("holdfast, a step more", "table B a step more", 750), ("holdfast, one step", "run / empty task", 2.5),
        ("holdfast, 1,000 steps", "claim to next step ms", 200), ("holdfast, death seen", "all", 2),
        ("holdfast, lease ran out", "all", 14), ("holdfast, death seen", "settled_repeated", 0),
        ("holdfast, lease ran out", "settled_repeated", 0),
    ):  # fmt: skip
        if trial in found:
            say(f"{trial}, {what}", wanted, median(found[trial][what]))
    return "\ntargets\n" + "\n".join(said)
