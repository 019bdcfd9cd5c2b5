"""The part of ``GET /pools?sharing=true``: kinds of jobs that could use each other's warm pools."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.costs.prices import cost_cents, usd_text
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.row_words import length
from trainmaster.core.planning.warm_history import KEPT, WarmHistory
from trainmaster.core.planning.warm_sharing import FIELDS, Difference, SharingAdvice, WarmKind, sharing_advice
from trainmaster.core.policy import PoolPolicy
from trainmaster.core.request.asked_shapes import ROLE, SECURITY_GROUPS, SUBNETS, VOLUME_SIZE, matching_fields

MOST_KINDS = 50
"""Kinds of jobs of a pool that are compared, those that started last; their jobs are one BatchGetItem."""
_CACHE = "/opt/ml/sagemaker/warmpoolcache"
_WORDS: Mapping[Difference, str] = MappingProxyType(
    {
        Difference.ROLE: "the role",
        Difference.VOLUME: "the size of the volume",
        Difference.NETWORK: "the network",
    }
)
_VIEWED: Mapping[str, str] = MappingProxyType(
    {
        ROLE: "role_arn",
        VOLUME_SIZE: "volume_size_in_gb",
        SUBNETS: "subnets",
        SECURITY_GROUPS: "security_group_ids",
    }
)
"""Names of fields in a view, as the policy's ``overrides`` have them."""


def sharing_views(pool: PoolPolicy, context: RequestContext, *, now: datetime) -> list[View]:
    """Show which jobs differ in so little that they could use each other's warm pools.

    A caller who is no admin sees only kinds of jobs that none but the caller's teams submit.
    """
    kinds = list(_kinds(pool.name, context, now=now))
    return [_view(advice, pool, context) for advice in sharing_advice(kinds, pool.warm_pool, now=now)]


def _kinds(pool: str, context: RequestContext, *, now: datetime) -> Iterator[WarmKind]:
    """Yield the kinds of jobs that the caller sees, as far as a job of each is still stored."""
    reader = context.outside.reader
    seen = [
        (key, history)
        for key, history in reader.warm_histories(pool).items()
        if _last_start(history) > now - KEPT and _sees(context, history)
    ]
    latest = sorted(seen, key=lambda entry: (_last_start(entry[1]), entry[0]), reverse=True)[:MOST_KINDS]
    started = reader.to_start(history.job for _, history in latest if history.job is not None)
    for key, history in latest:
        job, body = started.get(history.job or "", (None, {}))
        fields = None if job is None else _fields(key, job, body)
        if fields is not None:
            yield WarmKind(fields=fields, history=history)


def _sees(context: RequestContext, history: WarmHistory) -> bool:
    """Tell whether each start is of a team of the caller; who is no admin sees none of an unknown team."""
    return context.is_admin or all(start.team in context.teams for start in history.starts)


def _last_start(history: WarmHistory) -> datetime:
    return max((start.at for start in history.starts), default=datetime.min.replace(tzinfo=UTC))


def _fields(key: str, job: Job, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what jobs of the key have in common; None if a later job of this name has another key."""
    for shape in job.spec.shapes:
        if shape.warm_key == key:
            ((capacity, count),) = shape.vector.items()
            return matching_fields(body, capacity.instance_type, count, subnet=shape.subnet)
    return None


def _view(advice: SharingAdvice, pool: PoolPolicy, context: RequestContext) -> View:
    fields = advice.kinds[0].fields
    instance_type, instances = fields["InstanceType"], fields["InstanceCount"]
    cents = _net_cents(advice, instances, context.policy.price_table.usd_per_hour(instance_type))
    return {
        "differ_in": [difference.value for difference in advice.differ_in],
        "instance_type": instance_type,
        "instances": instances,
        "kinds": [_kind_view(kind, advice.differ_in) for kind in advice.kinds],
        "since": instant_text(advice.since),
        "starts": advice.starts,
        "warm_now": advice.apart.warm,
        "warm_together": advice.together.warm,
        "saved_instance_seconds": round(advice.saves.total_seconds()) * instances,
        "idle_instance_seconds": round(advice.idles.total_seconds()) * instances,
        "saved_usd": None if cents is None else float(Decimal(cents).scaleb(-2)),
        "because": _because(advice, cents),
        "todo": " ".join(_todo(advice, pool.name)),
    }


def _net_cents(advice: SharingAdvice, instances: int, usd_per_hour: Decimal | None) -> int | None:
    """Return what the saved start-up costs, less what the further idle time does."""
    price = None if usd_per_hour is None else usd_per_hour * instances
    return cost_cents(price, max(advice.saves - advice.idles, timedelta()))


def _kind_view(kind: WarmKind, differ_in: Iterable[Difference]) -> View:
    names = [name for difference in differ_in for name in FIELDS[difference]]
    return {
        "teams": list(kind.teams),
        "last_job": kind.history.job,
        **{_VIEWED[name]: kind.fields[name] for name in names},
    }


def _because(advice: SharingAdvice, cents: int | None) -> str:
    fields = advice.kinds[0].fields
    kinds = " and ".join(_kind_text(kind, advice.differ_in) for kind in advice.kinds)
    count = fields["InstanceCount"]
    each = f" on each of {count} instances" if count > 1 else ""
    is_more = advice.idles > timedelta()
    idle = f", for {length(advice.idles)} more of" if is_more else f" and {length(-advice.idles)} less of"
    money = "" if cents is None else f" (about {usd_text(cents)} at list prices)"
    since = f"{advice.since.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return (
        f"Jobs of {kinds} on {count}x {fields['InstanceType']} differ only in"
        f" {' and '.join(_WORDS[difference] for difference in advice.differ_in)}. Of their {advice.starts}"
        f" starts since {since}, {advice.apart.warm} could use instances that their own kind had left warm,"
        f" and {advice.together.warm} if they were alike: {length(advice.saves)} less start-up{each}{idle}"
        f" idle instances{money}."
    )


def _kind_text(kind: WarmKind, differ_in: Iterable[Difference]) -> str:
    teams = f"team{'s' if len(kind.teams) > 1 else ''} {', '.join(kind.teams)}"
    return f"{teams} ({'; '.join(_value_text(kind, difference) for difference in differ_in)})"


def _value_text(kind: WarmKind, difference: Difference) -> str:
    match difference:
        case Difference.ROLE:
            return str(kind.fields[ROLE])
        case Difference.VOLUME:
            size = kind.fields[VOLUME_SIZE]
            return "no size" if size is None else f"{size} GB"
        case Difference.NETWORK:
            return ", ".join([*kind.fields[SUBNETS], *kind.fields[SECURITY_GROUPS]]) or "no VPC"


def _todo(advice: SharingAdvice, pool: str) -> Iterator[str]:
    """Yield what to do about each difference, and whom else that touches."""
    policy = f"for all jobs of pool {pool} in the policy"
    for difference in advice.differ_in:
        match difference:
            case Difference.VOLUME:
                size = max(kind.fields[VOLUME_SIZE] or 0 for kind in advice.kinds)
                yield (
                    f"Write VolumeSizeInGB: {size} into the requests, or overrides.volume_size_in_gb: {size}"
                    f" {policy}, which then refuses jobs that ask for more."
                )
            case Difference.ROLE:
                yield (
                    f"Write one RoleArn into the requests, or overrides.role_arn {policy}. These jobs then"
                    " have every right of that role, to the data of the other teams too: let only teams share"
                    " one that may read and change each other's data; their `roles` in the policy have to"
                    " allow it."
                )
            case Difference.NETWORK:
                yield (
                    "Write one VpcConfig into the requests, or overrides.subnets and security_group_ids"
                    f" {policy}. These jobs then reach whatever can be reached from there."
                )
    if len({team for kind in advice.kinds for team in kind.teams}) > 1:
        # Source: SageMaker developer guide, managed warm pools, persistent cache.
        yield (
            "On a warm instance a job finds what the job before it, also another team's, has left in"
            f" {_CACHE}."
        )
