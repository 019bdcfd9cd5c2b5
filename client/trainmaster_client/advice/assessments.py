"""Assesses shapes: each is put before the API as a dry run, then joined with prices, spot and memory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from statistics import median
from typing import Any

from trainmaster.core.costs.prices import SPOT_SHARE
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.request.options import Alternative

from trainmaster_client.advice.memory_fits import MemoryFit, memory_fit, run_in
from trainmaster_client.advice.shapes import (
    Candidate,
    Request,
    Source,
    answers_by_width,
    asked_for,
    has_checkpoints,
    is_elastic,
    longest_hours,
    network_note,
    proposals,
    renamed,
    shape_text,
    subnets_of,
    with_shapes,
)
from trainmaster_client.advice.spot_scores import PlacementScore, SpotScores
from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import InvalidArgumentError, InvalidRequestError, Problem

HOURS_AGAIN = 0.5
"""Hours of work an interruption costs a job with checkpoints: a start-up, and the work since the newest
one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpeed:
    """How fast a shape trained, as earlier runs show it."""

    metric: str
    per_second: float
    """Median of the runs."""
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    candidate: Candidate
    answer: Document
    """The API's answer to the dry run."""
    score: PlacementScore | None = None
    """EC2's placement score; None for on-demand shapes."""
    network: str = ""
    memory: MemoryFit | None = None
    keeps_checkpoints: bool = False
    likely_hours: float | None = None
    """Hours such jobs recently took on as many accelerators of other shapes; None if unknown or this shape
    has its own record."""
    speed: MeasuredSpeed | None = None

    @property
    def is_valid(self) -> bool:
        return self.answer.get("valid") is True

    @property
    def is_sound(self) -> bool:
        """Tell whether the shape is valid, and nothing that is known speaks against it."""
        fits = self.memory is None or self.memory.fits
        return self.is_valid and fits and (self.keeps_checkpoints or not self.candidate.is_spot)

    @property
    def start(self) -> datetime | None:
        """Median of the estimated start; None if the API gives no estimate."""
        estimate = self.answer.get("estimated_start")
        return datetime.fromisoformat(estimate["p50"]) if isinstance(estimate, Mapping) else None

    @property
    def cost_usd(self) -> float | None:
        return self.answer.get("estimated_cost_usd")

    @property
    def own_hours(self) -> float | None:
        """Hours the job is priced for in this shape; None if its price is unknown.

        The API prices a job by how long such jobs recently took there, else by MaxRuntimeInSeconds.
        """
        rate, cost = self.answer.get("usd_per_hour"), self.cost_usd
        return None if not rate or cost is None else cost / rate

    @property
    def run_hours(self) -> float | None:
        """Expected hours of the run; None if its price is unknown."""
        return self.own_hours if self.likely_hours is None or self.own_hours is None else self.likely_hours

    @property
    def work_per_usd(self) -> float | None:
        """Work that a dollar gets, in what the metric counts; None if speed or price are not known.

        Spot counts at the share of the price that is assumed for it, interruptions not counted.
        """
        rate = self.answer.get("usd_per_hour")
        if self.speed is None or not rate:
            return None
        return 3600 * self.speed.per_second / (float(rate) * (SPOT_SHARE if self.candidate.is_spot else 1.0))

    @property
    def expected_interruptions(self) -> float | None:
        """Expected interruptions over the run's hours; 0 on demand, None if no job ran on the type recently.

        If those hours are not known, all of MaxRuntimeInSeconds counts.
        """
        if not self.candidate.is_spot:
            return 0.0
        for record in self.answer.get("spot_record") or ():
            rate: float | None = record.get("interruptions_per_instance_hour")
            longest: float | None = record["expected_interruptions"]
            if rate is None or self.run_hours is None:
                return longest
            return rate * int(record["instances"]) * self.run_hours
        return None

    @property
    def expected_cost_usd(self) -> float | None:
        """Estimate the cost with the expected interruptions; spot counts at the share assumed for it."""
        hours, rate = self.run_hours, self.answer.get("usd_per_hour")
        if hours is None or rate is None:
            return self.cost_usd
        if not self.candidate.is_spot:
            return self.cost_usd if self.likely_hours is None else float(rate) * hours
        again = HOURS_AGAIN if self.keeps_checkpoints else hours / 2
        repeated = (self.expected_interruptions or 0.0) * again
        return float(rate) * SPOT_SHARE * (hours + repeated)


def with_run_times(assessments: Sequence[Assessment], *, longest: float | None) -> list[Assessment]:
    """Give shapes without a record of their own the median run time of shapes with the same accelerators.

    ``longest`` is MaxRuntimeInSeconds in hours: a cost below it shows that the API measured run times.
    """
    known: dict[object, list[float]] = {}
    for assessment in assessments:
        if longest is not None and _is_measured(assessment, longest):
            known.setdefault(_accelerators(assessment), []).append(assessment.own_hours or 0.0)
    return [
        replace(assessment, likely_hours=median(known[_accelerators(assessment)]))
        if longest is not None
        and not _is_measured(assessment, longest)
        and _accelerators(assessment) in known
        else assessment
        for assessment in assessments
    ]


def _is_measured(assessment: Assessment, longest: float) -> bool:
    """Tell whether the API priced recent run times and not the longest run; costs are rounded to the cent."""
    rate, cost = assessment.answer.get("usd_per_hour"), assessment.cost_usd
    return rate is not None and cost is not None and cost < rate * longest - 0.01


def _accelerators(assessment: Assessment) -> object:
    """Return a key that is equal for shapes with the same kind and number of accelerators."""
    shape = assessment.candidate.shape
    if shape is None:
        return None
    accelerators = BY_TYPE.get(shape.capacity.instance_type)
    if accelerators is None:
        return shape.capacity.instance_type, shape.count
    return accelerators.kind, accelerators.memory_mib, accelerators.count * shape.count


class Assessor:
    """Args: ``scores`` knows spot capacity; ``report`` hears which shape is being tried, for which team."""

    def __init__(
        self,
        api: ApiClient,
        request: Request,
        scores: SpotScores,
        *,
        report: Callable[[str], None],
        team: str | None = None,
    ) -> None:
        self._api = api
        self._team = team
        self._own, self._request = request, renamed(request)
        self.is_elastic = is_elastic(request)
        self._scores = scores
        self._report = report
        self._run = run_in(request)
        self._subnets = subnets_of(request)

    def assess(self, extra: Iterable[Alternative]) -> list[Assessment]:
        """Assess the request's own shapes, then the ``extra`` ones, then those with the same accelerators.

        Raises InvalidRequestError if the API finds the request invalid in every shape.
        """
        results = [self._assessment(candidate) for candidate in self._candidates(extra)]
        refusals = [refusal for _, refusal in results if refusal is not None]
        if len(refusals) == len(results):
            raise refusals[0]
        return with_run_times([assessment for assessment, _ in results], longest=longest_hours(self._request))

    def speeds(self) -> Sequence[Mapping[str, Any]] | None:
        """Return what the stack has measured of the program, by shape; it goes by the job's own name.

        None where the stack says that it could not read it just now.
        """
        answer = self._api.try_job(with_shapes(self._own, None), team=self._team)
        speeds: Sequence[Mapping[str, Any]] | None = answer.get("measured_speeds", ())
        return speeds

    def try_shapes(self, shapes: str) -> Document:
        """Try the request with these alternatives as a dry run."""
        return self._api.try_job(with_shapes(self._request, shapes), team=self._team)

    def _candidates(self, extra: Iterable[Alternative]) -> Iterator[Candidate]:
        own, extra = asked_for(self._request), tuple(extra)
        like = own[0].shape
        yield from own
        if like is None:
            if extra:
                hint = "Write InstanceType and InstanceCount into it, or leave --shape and --measured out."
                raise InvalidArgumentError(
                    "The request has no single shape to compare others with.", hint=hint
                )
            return
        seen = {candidate.shape for candidate in own}
        proposed = (self._pinned(shape) for shape in proposals(like, self._api.pools().get("pools") or ()))
        for source, shapes in ((Source.OPTION, extra), (Source.PROPOSED, proposed)):
            for shape in shapes:
                if shape not in seen:
                    seen.add(shape)
                    yield Candidate(source=source, shape=shape)

    def _pinned(self, shape: Alternative) -> Alternative:
        """Pin several spot hosts to the subnet where EC2 has most spot capacity, which is a zone's."""
        is_spread = shape.count > 1 and len(self._subnets) > 1
        if not is_spread or not Candidate(source=Source.PROPOSED, shape=shape).is_spot:
            return shape
        subnet = self._scores.best_subnet(shape, self._subnets)
        return Alternative(capacity=shape.capacity, count=shape.count, subnet=subnet)

    def _assessment(self, candidate: Candidate) -> tuple[Assessment, InvalidRequestError | None]:
        self._report(str(candidate))
        answer, refusal = self._tried(candidate)
        shape = candidate.shape
        if shape is None:
            return Assessment(candidate=candidate, answer=answer), refusal
        assessment = Assessment(
            candidate=candidate,
            answer=answer,
            score=self._scores.score(shape, self._subnets) if candidate.is_spot else None,
            network=network_note(shape, self._run),
            memory=memory_fit(shape, self._run),
            keeps_checkpoints=has_checkpoints(self._request),
        )
        return assessment, refusal

    def _tried(self, candidate: Candidate) -> tuple[Document, InvalidRequestError | None]:
        """Try one shape; a shape that makes the request invalid, by a wrong subnet say, gives violations."""
        shape = candidate.shape
        if candidate.source is Source.TAG and shape is not None and shape.count in self._by_width:
            return self._by_width[shape.count], None
        try:
            return self._api.try_job(self._in_shape(candidate), team=self._team), None
        except InvalidRequestError as error:
            return _as_violations(error.problem), error

    @cached_property
    def _by_width(self) -> dict[int, Document]:
        """Answers about each width of an elastic request, from one dry run; else empty."""
        if not self.is_elastic:
            return {}
        try:
            return answers_by_width(self._api.try_job(self._request, team=self._team))
        except InvalidRequestError:  # each width is tried by itself, which tells which of them are wrong
            return {}

    def _in_shape(self, candidate: Candidate) -> dict[str, Any]:
        if candidate.source is Source.REQUEST or candidate.shape is None:
            return with_shapes(self._request, None)
        return with_shapes(self._request, shape_text(candidate.shape))


def _as_violations(problem: Problem) -> Document:
    errors = [
        {"field": error.field, "message": error.message, "hint": error.hint} for error in problem.errors
    ]
    return {"valid": False, "violations": errors or [{"field": "", "message": problem.detail}]}
