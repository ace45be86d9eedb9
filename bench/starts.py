"""Starts runs the way an application does, and prints their ids."""

import argparse
import json

import django


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--runs", type=int, required=True)
    given.add_argument("--steps", type=int, required=True)
    words = given.parse_args()
    django.setup()
    from runs.sdk import start

    print(json.dumps({"runs": [str(start("bench-rest", {"steps": words.steps})) for _ in range(words.runs)]}))


if __name__ == "__main__":
    main()
