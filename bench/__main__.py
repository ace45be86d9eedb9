"""`make bench`: all benchmarks, peers in turns within each repetition, and a table of medians and ranges."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import deploy, kill, trials
from bench.table import Found, table, targets
from bench.world import World, world

Trial = Callable[[World], dict[str, float]]
OURS, THEIRS = {1: 40, 10: 150, 50: 500}, {1: 15, 10: 40, 50: 80}  # runs a repetition, by how many are in flight
GROUPS = ("steps", "more", "single", "resume", "kill", "deploy")


def trial_groups(quick: bool) -> dict[str, dict[str, Trial]]:
    """By group, the trials that take turns. `quick`: a fraction of the runs, for a look."""
    share = 3 if quick else 1
    steps: dict[str, Trial] = {}
    for flying in (1, 10, 50):
        steps[f"holdfast @{flying}"] = partial(trials.steps, flying=flying, runs=OURS[flying] // share)
        steps[f"dbos @{flying}"] = partial(trials.steps_dbos, flying=flying, runs=THEIRS[flying] // share)
        steps[f"pgbench @{flying}"] = partial(trials.inserts, clients=flying, seconds=1 if quick else 3)
    gone = partial(kill.kill_worker, runs=100, steps=190, lease=10, sweep=2)
    return {
        "steps": steps,
        "more": {"holdfast, a step more": partial(trials.marginal, runs=50 if quick else 100)},
        "single": {"holdfast, one step": partial(trials.single, starts=20 if quick else 60)},
        "resume": {
            "holdfast, 1,000 steps": trials.resume,
            "dbos, 1,000 steps": trials.resume_dbos,
            "holdfast, 10,000 steps": partial(trials.resume, steps=10_000),
        },
        "kill": {
            "holdfast, death seen": partial(gone, seen=True),
            "holdfast, lease ran out": partial(gone, seen=False),
            "dbos, started again": partial(kill.kill_dbos, runs=100, steps=60),
        },
        "deploy": {"holdfast, 7 to 8 and back": partial(deploy.deploy, flying=20 if quick else 50)},
    }


def main() -> None:
    given = argparse.ArgumentParser(prog="bench", description=__doc__)
    given.add_argument("--quick", action="store_true", help="one small repetition of each: a look, not a measurement")
    given.add_argument("--repeats", type=int, help="repetitions (default 5; of kills and resumes 3)")
    given.add_argument("--only", default=",".join(GROUPS), help=f"some of {','.join(GROUPS)}")
    given.add_argument("--json", type=Path, metavar="FILE", help="write every number of every repetition there")
    words = given.parse_args()
    chosen = [group for group in words.only.split(",") if group]
    if unknown := set(chosen) - set(GROUPS):
        given.error(f"no benchmark named {', '.join(sorted(unknown))}")
    found: Found = {}
    with world() as here:
        for group, turns in trial_groups(words.quick).items():
            if group in chosen:
                repeats = words.repeats or (
                    1 if words.quick else 3 if group in ("resume", "kill", "more", "deploy") else 5
                )
                for repetition in range(1, repeats + 1):
                    measure(here, turns, found, f"{repetition} of {repeats}")
    print(table(found))
    print(targets(found))
    if words.json:
        words.json.write_text(json.dumps(found, indent=1))


def measure(here: World, turns: dict[str, Trial], found: Found, which: str) -> None:
    for name, trial in turns.items():
        print(f"{name}: {which}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        for what, number in ({"load": os.getloadavg()[0]} | trial(here)).items():
            found.setdefault(name, {}).setdefault(what, []).append(number)


if __name__ == "__main__":
    main()
