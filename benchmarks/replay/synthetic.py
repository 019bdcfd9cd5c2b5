"""A trace for where none is at hand: made up, of the shape of a shared research cluster, always the same."""

import random
from collections.abc import Iterator

from benchmarks.replay.jobs import DAY_S

DAYS = 7
JOBS_A_DAY = 800
TEAMS = 11
BUSIEST_SHARE = 0.3
"""Share of the jobs from the team that sends most; each next team sends less."""
GPUS = {1: 0.942, 2: 0.016, 4: 0.028, 8: 0.012, 16: 0.0015, 32: 0.0005}
"""Share of the jobs by width in GPUs."""
MEDIAN_RUN_S = {1: 1100, 2: 1500, 4: 10_000, 8: 20_000, 16: 20_000, 32: 20_000}
SPREAD = 2.0
"""Standard deviation of the logarithm of run times: most are short, a few take days."""
BURST_SHARE = 0.5
"""Share of the jobs that come in bursts: sweeps of one team in one width."""
BURST_LENGTH = 15
"""Mean number of jobs in a burst."""
SEED = 20_171_018


def rows() -> list[dict[str, str]]:
    """Make the rows, with the columns of a trace file."""
    chance = random.Random(SEED)
    made = sorted(_jobs(chance), key=lambda row: row[0])
    return [
        {
            "job_id": f"s{number:05d}",
            "submit_s": str(submit_s),
            "gpus": str(gpus),
            "duration_s": str(duration_s),
            "vc": team,
        }
        for number, (submit_s, gpus, duration_s, team) in enumerate(made)
    ]


def _jobs(chance: random.Random) -> Iterator[tuple[int, int, int, str]]:
    wanted, made = DAYS * JOBS_A_DAY, 0
    while made < wanted:
        begin_s, gpus, team = chance.uniform(0, DAYS * DAY_S), _gpus(chance), _team(chance)
        bursts = chance.random() < BURST_SHARE / BURST_LENGTH / (1 - BURST_SHARE)
        length = 1 + int(chance.expovariate(1 / BURST_LENGTH)) if bursts else 1
        typical_s = MEDIAN_RUN_S[gpus] * chance.lognormvariate(0, SPREAD)
        for number in range(length):
            run_s = typical_s * chance.lognormvariate(0, 0.3)
            yield int(begin_s) + 20 * number, gpus, max(30, int(run_s)), team
        made += length


def _gpus(chance: random.Random) -> int:
    (width,) = chance.choices(list(GPUS), weights=list(GPUS.values()))
    return width


def _team(chance: random.Random) -> str:
    """Draw a team; each sends a fixed share less than the one before it."""
    weights = [(1 - BUSIEST_SHARE) ** number for number in range(TEAMS)]
    (number,) = chance.choices(range(TEAMS), weights=weights)
    return f"team{number:02d}"
