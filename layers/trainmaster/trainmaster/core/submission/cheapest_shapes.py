"""Order the shapes of a kind of work by measured work per dollar, for ``alternatives=cheapest``."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.core.costs.prices import SPOT_SHARE, PriceTable
from trainmaster.core.durations.work_speeds import MeasuredRun, counted, usual_speed
from trainmaster.core.errors import FieldError, invalid
from trainmaster.core.jobs.instances import Capacity, Vector, parse_vector
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.request.options import ALTERNATIVES, CHEAPEST
from trainmaster.core.request.request import read_request
from trainmaster.core.submission.admission import Submission

LEAST_RUNS = 2
"""Runs that a shape needs: one alone may have met a slow disk, or a neighbour on its host."""
LEAST_SHAPES = 2
LONGEST_VALUE = 256
"""Characters of a tag's value. Source: SageMaker API reference, Tag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedShape:
    """One shape of the order."""

    capacity: Capacity
    count: int
    work_per_usd: float
    runs: int

    @property
    def tag(self) -> str:
        """The shape as the tag has it."""
        spot = ":spot" if self.capacity.is_spot else ""
        return f"{self.capacity.instance_type}={self.count}{spot}"

    def __str__(self) -> str:
        spot = " on spot" if self.capacity.is_spot else ""
        return f"{self.count} x {self.capacity.instance_type}{spot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Shapes by work per dollar, the best first; at least two."""

    unit: str
    shapes: tuple[RankedShape, ...]
    other_settings: bool = False
    """Whether the runs had other hyperparameters than the job."""
    unpriced: tuple[str, ...] = ()
    """Types whose shapes are not in the order because their price is unknown."""

    @property
    def tag(self) -> str:
        """The value of the tag that the order stands for: as many shapes as it has room for."""
        value = self.shapes[0].tag
        for shape in self.shapes[1:]:
            longer = f"{value} {shape.tag}"
            if len(longer) > LONGEST_VALUE:
                break
            value = longer
        return value

    def sentence(self, own: Vector) -> str:
        """Say why the first shape is the first, beside the one in the request if that was measured."""
        first, *others = self.shapes
        other = next((shape for shape in others if {shape.capacity: shape.count} == own), others[0])
        spot = any(shape.capacity.is_spot for shape in (first, other))
        return (
            f"{first}: {first.work_per_usd / other.work_per_usd:.2f}x the {self.unit} per USD of {other},"
            f" measured on {first.runs + other.runs} runs"
            + (" with other hyperparameters" if self.other_settings else "")
            + (f"; spot is assumed to cost {SPOT_SHARE:.0%} of the price" if spot else "")
            + (f"; left out, as the policy has no price: {', '.join(self.unpriced)}" if self.unpriced else "")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """The shapes that a job may be given, and what they cost."""

    pool: PoolPolicy
    prices: PriceTable
    saves_checkpoints: bool
    """Whether it gets spot at all: without checkpoints an interruption costs all of the work."""

    def offers(self, capacity: Capacity, count: int) -> bool:
        """Tell whether the pool has as many instances, and the job can be given them."""
        if capacity.is_spot and not self.saves_checkpoints:
            return False
        most = self.pool.spot_capacity if capacity.is_spot else self.pool.most_capacity
        return 0 < count <= most.get(capacity.instance_type, 0)

    def usd_per_hour(self, capacity: Capacity, count: int) -> float | None:
        """Return the price of a shape; None if it is not known."""
        price = self.prices.usd_per_hour(capacity.instance_type)
        if price is None or price <= 0:
            return None
        return float(price) * count * (SPOT_SHARE if capacity.is_spot else 1.0)

    def unpriced(self, runs: Iterable[MeasuredRun]) -> tuple[str, ...]:
        """Return, sorted, the types of measured shapes that lack nothing but a price."""
        shapes = {
            shape for text in sorted({run.shape for run in runs}) for shape in parse_vector(text).items()
        }
        return tuple(
            sorted(
                {
                    capacity.instance_type
                    for capacity, count in shapes
                    if self.offers(capacity, count) and self.usd_per_hour(capacity, count) is None
                }
            )
        )


def ranking_of(
    runs: Iterable[MeasuredRun], market: Market, *, settings: str, now: datetime
) -> Ranking | None:
    """Order the shapes by work per dollar; None if too few of them were measured in one unit.

    Runs with the job's own hyperparameters go before others of its program, because a larger model is slower
    in every shape.

    Args:
        runs: What was measured of the job's kind of work.
        market: What shapes there are, with their prices.
        settings: Digest of the job's hyperparameters; empty: it has none.
        now: The instant at which the job is submitted.
    """
    known = counted(runs, now=now)
    own = [run for run in known if run.settings == settings]
    for considered, is_own in ((own, True), (known, False)):
        ranking = _best_known(considered, market)
        if ranking is not None:
            return replace(ranking, other_settings=not is_own, unpriced=market.unpriced(considered))
    return None


def _best_known(runs: Sequence[MeasuredRun], market: Market) -> Ranking | None:
    """Rank by the unit in which most shapes were measured; units are never mixed."""
    rankings = [
        Ranking(unit=unit, shapes=shapes)
        for unit in sorted({run.speed.unit for run in runs})
        if len(shapes := _ranked([run for run in runs if run.speed.unit == unit], market)) >= LEAST_SHAPES
    ]
    return max(rankings, key=lambda ranking: len(ranking.shapes), default=None)


def _ranked(runs: Iterable[MeasuredRun], market: Market) -> tuple[RankedShape, ...]:
    by_shape: defaultdict[str, list[MeasuredRun]] = defaultdict(list)
    for run in runs:
        by_shape[run.shape].append(run)
    shapes = (
        _shape(text, measured, market) for text, measured in by_shape.items() if len(measured) >= LEAST_RUNS
    )
    known = (shape for shape in shapes if shape is not None)
    return tuple(sorted(known, key=lambda shape: (-shape.work_per_usd, shape.tag)))


def _shape(text: str, runs: Sequence[MeasuredRun], market: Market) -> RankedShape | None:
    """Return a shape with its work per dollar; None if it has no price, or the job cannot be given it."""
    ((capacity, count),) = parse_vector(text).items()
    usd = market.usd_per_hour(capacity, count)
    if usd is None or not market.offers(capacity, count):
        return None
    work = 3600 * usual_speed(runs) / usd
    return RankedShape(capacity=capacity, count=count, work_per_usd=work, runs=len(runs))


def wants_cheapest(submission: Submission) -> bool:
    """Tell whether the request leaves the order of its shapes to what was measured."""
    tags = submission.body.get("Tags", [])
    return any(tag["Key"] == ALTERNATIVES and tag["Value"] == CHEAPEST for tag in tags)


def with_cheapest(
    submission: Submission, runs: Sequence[MeasuredRun], market: Market, *, now: datetime
) -> Submission:
    """Write the shapes into the request, the best first, as if its author had listed them.

    All that comes later, rules, the planner and each start, then judges the same list.

    Raises:
        InvalidRequestError: Too little was measured.
    """
    settings = submission.traits.work_kind.partition(":")[2]
    ranking = ranking_of(runs, market, settings=settings, now=now)
    if ranking is None:
        raise invalid([_unmeasured(submission, runs, market, now=now)])
    body = _with_tag(submission.body, ranking.tag)
    return replace(
        submission,
        body=body,
        ask=read_request(body),
        sent=submission.as_sent,
        measured=ranking.sentence(submission.ask.vector),
    )


def _with_tag(body: Mapping[str, Any], value: str) -> Mapping[str, Any]:
    tags = [tag | {"Value": value} if tag["Key"] == ALTERNATIVES else tag for tag in body["Tags"]]
    return {**body, "Tags": tags}


def _unmeasured(
    submission: Submission, runs: Sequence[MeasuredRun], market: Market, *, now: datetime
) -> FieldError:
    """Say what was measured, and what it takes: more runs, or prices of the types that have runs."""
    kept = counted(runs, now=now)
    shapes = sorted({run.shape for run in kept})
    measured = f"{len(kept)} in {len(shapes)} shapes ({', '.join(shapes[:4])})" if kept else "none"
    hint = (
        "list the shapes, e.g. ml.g5.12xlarge=1 ml.g5.4xlarge=4:spot, and give the job MetricDefinitions"
        " with train:tok_s or samples_per_second: each run of 5 minutes or more is then measured"
    )
    if unpriced := market.unpriced(kept):
        measured += f"; without a price: {', '.join(unpriced)}"
        hint = (
            "ask an administrator for prices of these types in the policy,"
            f" e.g. prices: {{{unpriced[0]}: 4.5}} in USD an hour,"
            " or list the shapes, e.g. ml.g5.12xlarge=1 ml.g5.4xlarge=4:spot"
        )
    return FieldError(
        field=submission.places.tag(ALTERNATIVES),
        message=f"is {CHEAPEST}, which needs {LEAST_RUNS} runs of the program in each of {LEAST_SHAPES}"
        f" shapes of the pool, measured in one unit, with known prices; measured: {measured}",
        hint=hint,
    )
