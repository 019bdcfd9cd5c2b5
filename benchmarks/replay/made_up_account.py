"""Makes up an account to use without a trace: always the same, with what no published trace has.

Users repeat themselves: jobs of one name prefix take about as long as each other. Some fail, some are
interrupted by a failure of the service, and the account allows less than the policy promises.
"""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainmaster_client.simulate.engine.past_jobs import AccountBounds

from benchmarks.replay.jobs import DAY_S, POOLS

DAYS = 6
TEAMS = ("language", "vision", "speech", "ranking", "robotics")
BUSIEST_SHARE = 0.35
"""Share of the jobs that the first team sends; each next team sends less."""
USERS = 4
"""Users of each team."""
PROJECTS = 3
"""Projects of each user, each with a name prefix of its own."""
GPUS = {1: 0.90, 2: 0.03, 4: 0.05, 8: 0.015, 16: 0.005}
"""Share of the projects by width in GPUs."""
MEDIAN_RUN_S = {1: 1200, 2: 2000, 4: 8000, 8: 15_000, 16: 15_000}
AMONG_PROJECTS, WITHIN_PROJECT = 1.7, 0.5
"""Standard deviations of the logarithm of run times."""
SWEEP = 12
"""Mean number of jobs that a user submits at once."""
SWEEPS_A_DAY = 55
NIGHT_SHARE = 0.35
"""Submissions in the quietest hour, as a share of those in the busiest."""
FAILED_SHARE, BROKEN_SHARE = 0.06, 0.03
ACCOUNT_SHARE = 0.97
"""Share of the single-GPU instances promised by the policy that the account allows."""
START_GAP_S = 1
SEED = 20_260_105


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    team: str
    user: str
    prefix: str
    gpus: int
    typical_s: float


def rows() -> list[dict[str, str]]:
    """Make the rows, with the columns of a trace file and those that ``jobs_of`` reads beside them."""
    chance = random.Random(SEED)
    projects = list(_projects(chance))
    weights = [BUSIEST_SHARE * (1 - BUSIEST_SHARE) ** TEAMS.index(project.team) for project in projects]
    made: list[tuple[int, dict[str, str]]] = []
    for _ in range(DAYS * SWEEPS_A_DAY):
        (project,) = chance.choices(projects, weights=weights)
        made += _sweep(chance, project, _moment_s(chance))
    made.sort(key=lambda entry: entry[0])
    return [row | {"job_id": f"{row['job_id']}-{number:05d}"} for number, (_, row) in enumerate(made)]


def bounds(capacities: Mapping[str, int]) -> AccountBounds:
    """Return what the account allows for pools of this size."""
    most = (
        {POOLS["g1"].type: max(2, math.floor(ACCOUNT_SHARE * capacities["g1"]))} if "g1" in capacities else {}
    )
    return AccountBounds(instances=most, start_gap_s=START_GAP_S)


def _projects(chance: random.Random) -> Iterator[Project]:
    for team in TEAMS:
        for user in range(USERS):
            for number in range(PROJECTS):
                (gpus,) = chance.choices(list(GPUS), weights=list(GPUS.values()))
                typical_s = MEDIAN_RUN_S[gpus] * chance.lognormvariate(0, AMONG_PROJECTS)
                name = f"{team}-{user}"
                yield Project(
                    team=team,
                    user=name,
                    prefix=f"{name}-project{number}",
                    gpus=gpus,
                    typical_s=typical_s,
                )


def _moment_s(chance: random.Random) -> int:
    """Draw a second; days have more than nights."""
    while True:
        second = chance.uniform(0, DAYS * DAY_S)
        busy = (1 - math.cos(2 * math.pi * second / DAY_S)) / 2
        if chance.random() < NIGHT_SHARE + (1 - NIGHT_SHARE) * busy:
            return int(second)


def _sweep(chance: random.Random, project: Project, begin_s: int) -> Iterator[tuple[int, dict[str, str]]]:
    for number in range(1 + int(chance.expovariate(1 / SWEEP))):
        run_s = project.typical_s * chance.lognormvariate(0, WITHIN_PROJECT)
        run_s = max(30, int(min(run_s, 5 * DAY_S)))
        fate = chance.random()
        failed = fate < FAILED_SHARE
        row = {
            "job_id": project.prefix,
            "submit_s": str(begin_s + 5 * number),
            "gpus": str(project.gpus),
            "duration_s": str(max(30, run_s // 4) if failed else run_s),
            "vc": project.team,
            "user": project.user,
        }
        if failed:
            row["end"] = "failed"
        elif fate < FAILED_SHARE + BROKEN_SHARE:
            row["breaks_after_s"] = str(run_s // 2)
        yield begin_s + 5 * number, row
