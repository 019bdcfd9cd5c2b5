"""Metric data queries: metrics with a statistic, and expressions over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from local.cloudwatch import metric_math
from local.cloudwatch.metric_math import ExpressionError, Kind, Node, Point
from local.cloudwatch.metrics import STATISTICS, Metric, MetricStore
from local.wire import AwsError

_MINUTE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A metric with a statistic."""

    metric: Metric
    statistic: str
    period: timedelta
    unit: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    sources: Mapping[str, Source]
    """Metrics by the id of their query."""
    formulas: Mapping[str, Node]
    """Parsed expressions by the id of their query."""
    returned: tuple[str, ...]
    """Ids of those whose result is wanted."""
    labels: Mapping[str, str]

    def period(self, query_id: str) -> timedelta:
        """Return the period of a query and of all under it. Raises AwsError if those differ."""
        if query_id in self.sources:
            return self.sources[query_id].period
        needed = metric_math.references(self.formulas[query_id])
        periods = {self.period(needed_id) for needed_id in needed}
        if len(periods) != 1:
            raise invalid(f"the metrics of expression {query_id!r} must have one period")
        return periods.pop()

    def point(self, query_id: str, start: datetime, store: MetricStore) -> Point:
        """Return a query's value for the period that begins at ``start``."""
        source = self.sources.get(query_id)
        if source is None:
            formula = self.formulas[query_id]
            points = {
                reference: self.point(reference, start, store)
                for reference in metric_math.references(formula)
            }
            return metric_math.compute(formula, points)
        end = start + source.period
        samples = store.samples(source.metric, start=start, end=end, unit=source.unit)
        return None if samples is None else samples.statistic(source.statistic)


def invalid(problem: str) -> AwsError:
    return AwsError("ValidationError", problem)


def of_metric(document: Mapping[str, Any]) -> Queries:
    """Return the only query of an alarm on a single metric. Raises AwsError."""
    source = Source(
        metric=Metric.of(document),
        statistic=statistic(document.get("Statistic")),
        period=period(document.get("Period")),
        unit=document.get("Unit"),
    )
    return Queries(
        sources={"metric": source}, formulas={}, returned=("metric",), labels={"metric": source.metric.name}
    )


def read(documents: Sequence[Mapping[str, Any]]) -> Queries:
    """Read a list of MetricDataQuery. Raises AwsError for nonsense and for what the twin does not know."""
    if len({document["Id"] for document in documents}) < len(documents):
        raise invalid("the ids of metric data queries must differ")
    queries = Queries(
        sources={document["Id"]: _source(document) for document in documents if "MetricStat" in document},
        formulas={
            document["Id"]: _formula(document) for document in documents if "MetricStat" not in document
        },
        returned=tuple(document["Id"] for document in documents if document.get("ReturnData", True)),
        labels={document["Id"]: _label(document) for document in documents},
    )
    kinds: dict[str, Kind] = dict.fromkeys(queries.sources, Kind.SERIES)
    for query_id in queries.formulas:
        _note_kind(query_id, queries, kinds, under=())
    for query_id in queries.returned:
        if kinds[query_id] is not Kind.SERIES:
            raise invalid(
                f"expression {query_id!r} gives {kinds[query_id]}; the twin knows a time series alone"
            )
    return queries


def statistic(name: str | None) -> str:
    """Raises AwsError for one that the twin does not compute."""
    if name not in STATISTICS:
        raise invalid(f"the twin knows the statistics {', '.join(STATISTICS)}, not {name}")
    return name


def period(seconds: int | None) -> timedelta:
    """Raises AwsError for a period that is no whole number of minutes."""
    if not seconds or seconds % _MINUTE_S:
        raise invalid(f"the twin knows periods of whole minutes, not {seconds} s")
    return timedelta(seconds=seconds)


def aligned(instant: datetime, step: timedelta) -> datetime:
    """Return the last multiple of the period before or at an instant."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return instant - (instant - epoch) % step


def _source(query: Mapping[str, Any]) -> Source:
    if "Expression" in query:
        raise invalid(f"query {query['Id']!r} has both MetricStat and Expression")
    stat = query["MetricStat"]
    return Source(
        metric=Metric.of(stat["Metric"]),
        statistic=statistic(stat["Stat"]),
        period=period(stat["Period"]),
        unit=stat.get("Unit"),
    )


def _formula(query: Mapping[str, Any]) -> Node:
    try:
        return metric_math.parse(query.get("Expression", ""))
    except ExpressionError as error:
        raise invalid(f"error in expression {query['Id']!r}: {error}") from error


def _label(query: Mapping[str, Any]) -> str:
    name = query["MetricStat"]["Metric"]["MetricName"] if "MetricStat" in query else query["Id"]
    return str(query.get("Label", name))


def _note_kind(query_id: str, queries: Queries, kinds: dict[str, Kind], *, under: tuple[str, ...]) -> None:
    """Note the kind of an expression and of its parts; ``under`` lists the expressions it is part of."""
    if query_id in under:
        raise invalid(f"expression {query_id!r} refers to itself")
    formula = queries.formulas.get(query_id)
    if formula is None or query_id in kinds:
        return
    for needed in sorted(metric_math.references(formula)):
        _note_kind(needed, queries, kinds, under=(*under, query_id))
    try:
        kinds[query_id] = metric_math.kind_of(formula, kinds)
    except ExpressionError as error:
        raise invalid(f"error in expression {query_id!r}: {error}") from error
