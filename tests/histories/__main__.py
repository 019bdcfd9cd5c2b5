"""Play histories: ``python -m tests.histories [--seed N] [--count N] [--world kind|harsh] [--trace]``."""

import argparse
import sys
import time
from collections import Counter

from trainmaster.core.jobs.states import TRANSITIONS, JobState

from tests.histories.playing import KINDS, play


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first history")
    parser.add_argument("--count", type=int, default=1, help="how many")
    parser.add_argument("--trace", action="store_true", help="print each step")
    parser.add_argument("--world", choices=KINDS, default="kind", help="how AWS behaves (docs/twin.md)")
    wish = parser.parse_args()
    began, edges, counts = time.monotonic(), Counter[tuple[JobState, JobState]](), Counter[str]()
    for seed in range(wish.seed, wish.seed + wish.count):
        watch = play(seed, tell=_print if wish.trace else lambda _: None, world=wish.world).world.watch
        edges += watch.edges
        counts += Counter(
            starts=sum(watch.starts.values()),
            preemptions=watch.preemptions,
            reuses=watch.reuses,
            retries=watch.retries,
            fallbacks=watch.fallbacks,
            dependents=watch.dependents,
        )
    _print(f"{wish.count} histories in {time.monotonic() - began:.1f} s: {dict(counts)}")
    for before, afters in TRANSITIONS.items():
        for after in sorted(afters):
            _print(f"{before.value:>10} -> {after.value:<10} {edges[before, after]}")
    return 0


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
