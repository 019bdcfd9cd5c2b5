"""Checks what is deployed and what its policy makes of it: versions, pools, pause, limits."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from trainmaster import __version__
from trainmaster.core.costs.prices import SHIPPED_REGION, PriceTable

from trainmaster_client.doctor.findings import (
    AwsSaid,
    Finding,
    Seen,
    asked,
    bad,
    good,
    skipped,
    worth_a_warning,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import VERSION_HEADER, document_of

_LIBRARIES: tuple[tuple[str, tuple[int, int], tuple[int, int]], ...] = (
    ("boto3", (1, 43), (2, 0)),
    ("sagemaker", (2, 257), (4, 0)),
)
"""Name, the oldest (major, minor) that is tested, and the first that is not. Those not installed are not
needed: the command line works without the SDK."""

_QUOTA_NAMES: Mapping[str, str] = {
    "on-demand": "{type} for training job usage",
    "spot": "{type} for spot training job usage",
}
"""Capacity type -> name of the quota. Source: AWS General Reference, "Amazon SageMaker AI quotas"."""


def stack_version(seen: Seen) -> Finding:
    """Check the stack's version; one of the same (major, minor) is compatible, before 1.0 as after."""
    assert seen.answer is not None, "the access is checked first"
    stack = seen.answer.headers.get(VERSION_HEADER, "")
    seen.facts["versions"] = {"stack": stack, "client": __version__}
    actual = f"stack {stack or 'too old to say its version'}, client {__version__}"
    if _pair(stack) > _pair(__version__):
        return bad(Trouble.OLD_CLIENT, actual)
    return good(actual) if _pair(stack) == _pair(__version__) else bad(Trouble.OLD_STACK, actual)


def libraries(seen: Seen) -> Finding:
    versions = {name: _installed(name) for name, _, _ in _LIBRARIES}
    seen.facts["libraries"] = versions
    actual = ", ".join(f"{name} {installed}" for name, installed in versions.items() if installed)
    for name, oldest, first_untested in _LIBRARIES:
        installed = versions[name]
        if installed and not oldest <= _pair(installed) < first_untested:
            return bad(Trouble.OLD_LIBRARY, actual)
    return good(actual)


def pools(seen: Seen) -> Finding:
    names = [str(pool.get("name")) for pool in seen.pools]
    return good(", ".join(names)) if names else worth_a_warning(Trouble.NO_POOLS, "none")


def paused(seen: Seen) -> Finding:
    if seen.policy is None:
        return skipped("only admins can see it; the reason of a waiting job says it, too")
    return bad(Trouble.PAUSED, "paused") if seen.policy.get("paused") is True else good("not paused")


def policy(seen: Seen) -> Finding:
    if seen.policy is None:
        return skipped("only admins can see it")
    warnings = [warning for warning in seen.policy.get("warnings") or () if isinstance(warning, dict)]
    messages = [str(warning.get("message")) for warning in warnings if warning.get("field") == "policy"]
    if messages:
        return bad(Trouble.POLICY_NOT_UNDERSTOOD, "; ".join(messages))
    outdated = [
        f"{warning.get('field')} {warning.get('message')}"
        for warning in warnings
        if warning.get("rule") == "defaults"
    ]
    if outdated:
        return worth_a_warning(Trouble.OUTDATED_DEFAULTS, "; ".join(outdated))
    return good("understood")


def rows(seen: Seen) -> Finding:
    """Check for rows set aside: everybody learns that there are some, admins also which."""
    document = (document_of(seen.answer) if seen.answer else None) or {}
    count = document.get("set_aside")
    if not count:
        return good("none set aside")
    if seen.policy is None:
        return worth_a_warning(Trouble.ROWS_SET_ASIDE, f"{count} set aside")
    repair = document_of(seen.send("GET", "/repair")) or {}
    entries = repair.get("set_aside")
    listed = [row for row in entries if isinstance(row, dict)] if isinstance(entries, list) else []
    seen.facts["set_aside"] = listed
    shown = "; ".join(f"{row.get('key')}: {row.get('error')}" for row in listed[:MOST_ROWS])
    rest = f"; and {len(listed) - MOST_ROWS} more" if len(listed) > MOST_ROWS else ""
    return bad(Trouble.ROWS_SET_ASIDE, f"{shown}{rest}" or f"{count} set aside")


MOST_ROWS = 5
"""Named on the screen; the report has all."""


def quotas(seen: Seen) -> Finding:
    wanted = {key: count for pool in seen.pools for key, count in _capacity(pool)}
    if not wanted:
        return skipped("there is no pool to compare with")
    values = asked(lambda: _quotas_of_account(seen))
    if isinstance(values, AwsSaid):
        return skipped(f"Service Quotas does not say: {values.why}")
    known = {key: values[name] for key in wanted if (name := _quota_name(key)) in values}
    seen.facts["quotas"] = {f"{kind} {unit}": known.get((kind, unit)) for kind, unit in wanted}
    above = [
        f"{_quota_name(key)}: pool {wanted[key]}, quota {allowed:g}"
        for key, allowed in known.items()
        if wanted[key] > allowed
    ]
    if above:
        return bad(Trouble.POOL_ABOVE_QUOTA, "; ".join(above))
    return good(f"{len(known)} compared") if known else skipped("Service Quotas has none of these types")


def account_limits(seen: Seen) -> Finding:
    limits = [_granted(limit) for pool in seen.pools for limit in pool.get("account_limits") or ()]
    return worth_a_warning(Trouble.ACCOUNT_LIMIT, "; ".join(limits)) if limits else good("none was met")


def start_pauses(seen: Seen) -> Finding:
    """Check for pauses of starts; a pool without pauses, or of an earlier version, lists none."""
    paused = [
        f"starts with {pause.get('role_arn') or 'a role of another team'} in pool {pool.get('name')}"
        f" are paused since {pause.get('since')}, AWS says {pause.get('message') or pause.get('code')}"
        for pool in seen.pools
        for pause in pool.get("start_pauses") or ()
    ]
    return worth_a_warning(Trouble.STARTS_PAUSED, "; ".join(paused)) if paused else good("none")


def _granted(limit: Mapping[str, Any]) -> str:
    count, kind = limit.get("limit"), str(limit.get("capacity_type"))
    what = f"{limit.get('instance_type')} {'on demand' if kind == 'on-demand' else f'on {kind}'}"
    first = f"AWS grants {f'at most {count}' if count else 'no'} {what} at present"
    again = _clock_time(limit.get("until"))
    return f"{first}; one job tries again from {again} on" if again else first


def _clock_time(instant: object) -> str:
    """Write an instant as ``03:12 UTC``; empty if another version of the stack writes it otherwise."""
    try:
        return datetime.fromisoformat(str(instant)).astimezone(UTC).strftime("%H:%M UTC")
    except ValueError:
        return ""


def prices(seen: Seen) -> Finding:
    """Check the prices: the shipped ones are of one region; the policy's go before them."""
    types = {instance_type for pool in seen.pools for (_, instance_type), _ in _capacity(pool)}
    if seen.policy is None:
        return skipped("for admins; trainmaster usage says it, too")
    document = seen.policy.get("policy")
    own = (document.get("prices") if isinstance(document, dict) else None) or {}
    lacking = PriceTable(overrides=own).shipped(types)
    if seen.region == SHIPPED_REGION or not lacking:
        return good(f"instance types: {len(types)}, region {seen.region}")
    return worth_a_warning(Trouble.PRICES_ELSEWHERE, f"{seen.region}: {', '.join(lacking)}")


def _capacity(pool: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for kind, field in (("on-demand", "capacity"), ("spot", "spot_capacity")):
        for instance_type, count in (pool.get(field) or {}).items():
            if count:
                yield (kind, str(instance_type)), int(count)


def _quota_name(key: tuple[str, str]) -> str:
    kind, instance_type = key
    return _QUOTA_NAMES[kind].format(type=instance_type)


def _quotas_of_account(seen: Seen) -> dict[str, float]:
    """Name -> value of every quota of SageMaker that applies here."""
    paginator = seen.client("service-quotas").get_paginator("list_service_quotas")
    pages = paginator.paginate(ServiceCode="sagemaker")
    return {quota["QuotaName"]: float(quota["Value"]) for page in pages for quota in page["Quotas"]}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _pair(text: str) -> tuple[int, int]:
    """Return (major, minor); (0, 0) if the text is no version."""
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)
