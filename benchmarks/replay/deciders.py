"""Defines a tournament's deciders: simple queues, and the product under several policies, one row each."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from trainmaster.core.policy import Policy, parse_policy
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.event_loop import engine_of, groups
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.plain_pool import PlainPool
from trainmaster_client.simulate.engine.pool_replay import PoolReplay
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.tally import Tally
from trainmaster_client.simulate.io.policy_replay import policy_of

from benchmarks.replay.elasticity import Asks
from benchmarks.replay.jobs import POOLS
from benchmarks.replay.plain_queues import (
    FirstComeFirstServed,
    LeastLoss,
    NewestSaversOnly,
    NewestVictim,
    SaversOnly,
    StrictPriority,
)
from benchmarks.replay.policy import AGING, RULES
from benchmarks.replay.pollux import Pollux
from benchmarks.replay.slurm import Slurm

EXAMPLE = Path(__file__).resolve().parents[2] / "policy.example.yaml"
_OF_A_POOL = ("order", "preemption", "warm_pool", "limits")
"""Keys of a policy's pool that are not about its own instances and teams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    label: str
    title: str
    """Description of the decider for people."""
    queue: type[PlainPool] | None = None
    """The simple queue; None means the product."""
    rules: Callable[[], Mapping[str, Any]] = dict
    """Makes the rules that the product's policy has for every pool."""
    only_full: bool = False
    """Whether it is left out unless everything is replayed."""
    asks: Asks = Asks.WIDTHS
    """The widths that elastic jobs ask it for."""

    @property
    def is_product(self) -> bool:
        return self.queue is None

    def policy(self, capacities: Mapping[str, int]) -> Policy:
        """Parse the decider's policy for pools of this size."""
        return parse_policy(self.document(capacities))

    def document(self, capacities: Mapping[str, int]) -> dict[str, Any]:
        pools = [
            {"name": pool, "capacity": {POOLS[pool].type: count}, **self.rules()}
            for pool, count in capacities.items()
        ]
        return {"version": 1, "pools": pools}


def rules_of(path: Path) -> Mapping[str, Any]:
    """Return the rules that a policy file has for its first pool."""
    first = yaml.safe_load(path.read_text(encoding="utf-8"))["pools"][0]
    return {key: first[key] for key in _OF_A_POOL if key in first}


def with_policy(path: Path) -> Decider:
    """Make a decider of the product with a file's rules for its first pool, named as the file.

    Raises:
        InvalidArgumentError: It has no pool, or is no policy.
    """
    try:
        rules = dict(rules_of(path))
    except (OSError, yaml.YAMLError, KeyError, IndexError, TypeError) as error:
        raise InvalidArgumentError(
            f"{path} has no policy with a pool: {error!r}.", hint="Give a file like policy.example.yaml."
        ) from error
    decider = Decider(
        label=path.stem, title=f"product, first pool of {path.name}", rules=partial(dict, rules)
    )
    policy_of(decider.document({"g1": 1}), source=str(path))
    return decider


def unpriced_rules() -> Mapping[str, Any]:
    """Return earlier releases' default: every outranked job is stopped, and nothing is kept warm."""
    return {
        "preemption": {"cost": {"enabled": False}, "max_per_job": 3},
        "warm_pool": {"keep_alive": "0s", "retain": "0s"},
    }


def fair_rules() -> Mapping[str, Any]:
    """Return the default in which a team that used twice its share loses a tenth of a class."""
    return {"order": {"fair_share": {"weight": 10}}}


def shortest_first_rules() -> Mapping[str, Any]:
    """Return the default with shortest jobs first."""
    return {"order": {"shortest_first": True}}


def tuned_rules(*, shortest_first: bool = False) -> Mapping[str, Any]:
    """Return the rules of ``benchmarks.trace``."""
    return {"order": {"aging": AGING, "backfill": True, "shortest_first": shortest_first}, **RULES}


PLAIN, PLAIN_NEWEST = "plain", "plain-newest"
BASES = (PLAIN, PLAIN_NEWEST)
"""Deciders that others are compared with: at each figure the better of the two."""
DEFAULT, SHORTEST_FIRST = "default", "shortest-first"

DECIDERS: Sequence[Decider] = (
    Decider(label="fifo", title="no priorities, nobody is stopped", queue=FirstComeFirstServed),
    Decider(label="strict", title="priorities, nobody is stopped", queue=StrictPriority),
    Decider(label="slurm", title="multifactor priority, EASY backfill, nobody is stopped", queue=Slurm),
    Decider(label=PLAIN, title="plain queue: stops the oldest of the lowest class", queue=PlainPool),
    Decider(label=PLAIN_NEWEST, title="plain queue: stops the newest of it", queue=NewestVictim),
    Decider(label="plain-savers", title="plain queue: stops only jobs that save", queue=SaversOnly),
    Decider(
        label="plain-savers-newest",
        title="the same: stops the newest",
        queue=NewestSaversOnly,
        only_full=True,
    ),
    Decider(label="plain-least-loss", title="plain queue: stops who loses least", queue=LeastLoss),
    Decider(label=DEFAULT, title="product, default policy"),
    Decider(
        label="example", title="product, pool p5 of policy.example.yaml", rules=partial(rules_of, EXAMPLE)
    ),
    Decider(label="unpriced", title="product, the default before ADR 60", rules=unpriced_rules),
    Decider(label="fair-share", title="product, default policy with order.fair_share", rules=fair_rules),
    Decider(label="tuned", title="product, policy of benchmarks.trace", rules=tuned_rules),
    Decider(
        label=SHORTEST_FIRST,
        title="product, default policy with order.shortest_first",
        rules=shortest_first_rules,
    ),
)

LARGEST, LEAST, ELASTIC, POLLUX = "largest", "least", "elastic", "pollux"
ELASTIC_DECIDERS: Sequence[Decider] = (
    Decider(label=LARGEST, title="default policy, elastic jobs at their largest width", asks=Asks.LARGEST),
    Decider(label=LEAST, title="default policy, elastic jobs at their least width", asks=Asks.LEAST),
    Decider(label=ELASTIC, title="default policy, elastic jobs at any of their widths"),
    Decider(label=POLLUX, title="Pollux's rule, speeds known, no priorities", queue=Pollux),
)
"""Deciders of a tournament with elastic jobs: what the tag is worth to those who set it, and to others."""


def replayed(
    decider: Decider, history: History, capacities: Mapping[str, int], *, progress: Progress | None = None
) -> list[Tally]:
    """Replay a history under a decider; return the tally of each pool."""
    policy = decider.policy(capacities)
    make: Callable[..., Any] = PoolReplay.of if decider.queue is None else decider.queue.of
    names = tuple(capacities)
    parts = groups(history, policy) if decider.is_product else [(name,) for name in names]
    parts = [names] if history.account.joins_pools else parts
    tallies: list[Tally] = []
    for number, pools in enumerate(parts):
        engine = engine_of(history, policy, pools, make, cpu_clock=time.process_time)
        engine.run(progress=None if progress is None else _part(progress, number, len(parts)))
        tallies += engine.close()
    return tallies


def _part(progress: Progress, number: int, parts: int) -> Progress:
    return lambda share: progress((number + share) / parts)
