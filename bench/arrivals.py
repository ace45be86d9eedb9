"""Starts runs of bench.deployed at a steady rate, whatever is deployed meanwhile, until its input ends."""

import argparse
import json
import sys
import threading
import time

import django


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--rate", type=float, required=True, help="runs a second")
    given.add_argument("--steps", type=int, required=True)
    words = given.parse_args()
    django.setup()
    from runs.sdk import start

    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    began, made = time.monotonic(), []
    while not over.wait(max(0.0, began + len(made) / words.rate - time.monotonic())):
        made.append(str(start("deployed", {"steps": words.steps})))
    print(json.dumps({"runs": made, "seconds": time.monotonic() - began}))


if __name__ == "__main__":
    main()
