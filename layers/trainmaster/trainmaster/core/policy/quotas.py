"""A pool's quotas: read, and measured against what the pool has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainmaster.core.policy.model import Quota
from trainmaster.core.policy.names import is_name
from trainmaster.core.policy.section import (
    MAX_COUNT,
    Findings,
    Section,
    is_number,
    nearest,
    path_of,
    shown,
    whole_number,
)

_QUOTA_HINT = "write {nominal: {TYPE: COUNT}}, with borrowing_limit beside it where there is one"


def quotas_of(section: Section, capacity: Mapping[str, int]) -> dict[str, Quota]:
    """By team. ``capacity`` is the pool's on-demand instances: what quotas are about."""
    reader = _Reader(capacity=capacity, findings=section.findings)
    quotas = {
        team: reader.quota(value, section.at(team))
        for team, value in section.entries()
        if is_name(team, section.at(team), section.findings)
    }
    _refuse_too_much(quotas, capacity, section)
    for team, quota in quotas.items():
        _warn_of_idle_limits(quota, capacity, section.at(team), section.findings)
    return quotas


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    capacity: Mapping[str, int]
    findings: Findings

    def quota(self, value: object, path: str) -> Quota:
        if is_number(value):
            return Quota(nominal=self._counts(value, path))
        if value is None:
            self.findings.refuse(path, "has no quota", _QUOTA_HINT)
        section = Section(value, path, self.findings)
        nominal, limit = section.value("nominal"), section.value("borrowing_limit")
        if isinstance(value, dict) and nominal is None and limit is None:
            self.findings.refuse(path, "has neither nominal nor borrowing_limit", _QUOTA_HINT)
        section.refuse_unknown()
        return Quota(
            nominal={} if nominal is None else self._counts(nominal, section.at("nominal")),
            borrowing_limit=None if limit is None else self._counts(limit, section.at("borrowing_limit")),
        )

    def _counts(self, value: object, path: str) -> dict[str, int]:
        if is_number(value):
            return self._bare_count(value, path)
        section = Section(value, path, self.findings)
        if value == {}:
            self.findings.refuse(path, "names no instance type", "write {TYPE: COUNT}, or leave the key out")
        return dict(self._owned(section))

    def _owned(self, section: Section) -> Iterator[tuple[str, int]]:
        for instance_type, count in section.entries():
            path = section.at(instance_type)
            if instance_type in self.capacity:
                yield instance_type, whole_number(count, path, self.findings, range(MAX_COUNT + 1))
            else:
                message = f"the pool has no on-demand capacity of {shown(instance_type)}"
                self.findings.refuse(path, message, nearest(instance_type, self.capacity) or self._known)

    def _bare_count(self, value: object, path: str) -> dict[str, int]:
        if len(self.capacity) == 1:
            (only,) = self.capacity
            return {only: whole_number(value, path, self.findings, range(MAX_COUNT + 1))}
        message = f"a bare number needs a pool with one on-demand type; this one has {len(self.capacity)}"
        self.findings.refuse(path, message, f"write {{TYPE: COUNT}}; {self._known}")
        return {}

    @property
    def _known(self) -> str:
        return f"quotas count on-demand instances; the pool has {', '.join(self.capacity) or 'none'}"


def _refuse_too_much(quotas: Mapping[str, Quota], capacity: Mapping[str, int], section: Section) -> None:
    for instance_type, there in capacity.items():
        promised = sum(quota.nominal.get(instance_type, 0) for quota in quotas.values())
        if promised > there:
            section.findings.refuse(
                section.path,
                f"the nominal quotas of {instance_type} add up to {promised}, the pool has {there}",
                f"lower them to {there} in all, or raise the capacity",
            )


def _warn_of_idle_limits(quota: Quota, capacity: Mapping[str, int], path: str, findings: Findings) -> None:
    for instance_type, limit in (quota.borrowing_limit or {}).items():
        nominal = quota.nominal.get(instance_type, 0)
        rest = max(capacity[instance_type] - nominal, 0)
        if limit > rest:
            findings.warn(
                path_of(path_of(path, "borrowing_limit"), instance_type),
                f"limits nothing: beyond the team's {nominal} the pool has {rest}, the limit is {limit}",
                f"write less than {rest}, or leave it out",
            )
