"""Quotas: what each team may count on in a pool, counted by the types of the pool's on-demand capacity."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from trainmaster.core.policy.findings import Location, nearest, shown
from trainmaster.core.policy.keys import Keys, Section, key_or_empty, optional
from trainmaster.core.policy.kinds import Whole, is_number, number_meant

_PERCENT = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%\s*")
_QUOTA_HINT = "write {nominal: {TYPE: COUNT}}, with borrowing_limit beside it where there is one"


@dataclass(frozen=True, slots=True)
class QuotaCounts:
    """The kind of value that counts the pool's on-demand instances; spot instances are outside quotas."""

    def read(self, written: object, at: Location) -> Mapping[str, int]:
        if isinstance(written, str):
            hint = f"write {_count_meant(written, at)}, or {{TYPE: COUNT}}"
            at.refuse(f"is not a number of instances: {shown(written)}", hint)
            return {}
        if not at.is_sound("capacity"):
            return self._counts_alone(written, at)
        capacity: Mapping[str, int] = at.around.get("capacity", {})
        known = f"quotas count on-demand instances; the pool has {', '.join(capacity) or 'none'}"
        if is_number(written):
            if len(capacity) == 1:
                return {only: Whole().read(written, at) for only in capacity}
            message = f"a bare number needs a pool with one on-demand type; this one has {len(capacity)}"
            at.refuse(message, f"write {{TYPE: COUNT}}; {known}")
            return {}
        if written == {}:
            at.refuse("names no instance type", "write {TYPE: COUNT}, or leave the key out")
        counts = {}
        for instance_type, count in at.mapping(written).items():
            place = at.below(instance_type)
            if instance_type in capacity:
                counts[instance_type] = Whole().read(count, place)
            else:
                message = f"the pool has no on-demand capacity of {shown(instance_type)}"
                place.refuse(message, nearest(instance_type, capacity) or known)
        return counts

    @staticmethod
    def _counts_alone(written: object, at: Location) -> Mapping[str, int]:
        """Read the numbers and accept any type: the pool's capacity was refused, its types are unknown."""
        if is_number(written):
            Whole().read(written, at)
        else:
            for instance_type, count in at.mapping(written).items():
                Whole().read(count, at.below(instance_type))
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota(Section):
    """The on-demand instances that one team may count on in a pool; spot instances are outside quotas."""

    nominal: Mapping[str, int] = key_or_empty(
        QuotaCounts(),
        "The team's own instances by type; a bare number where the pool has one on-demand type. "
        "A type left out: none.",
        empty={},
    )
    borrowing_limit: Mapping[str, int] | None = optional(
        QuotaCounts(),
        "Instances by type beyond `nominal`. A type or key left out: whatever others leave idle.",
    )


@dataclass(frozen=True, slots=True)
class TeamQuota:
    """The kind of value that is a quota, or its nominal part as a bare number."""

    def read(self, written: object, at: Location) -> Quota:
        if is_number(written):
            return Quota(nominal=QuotaCounts().read(written, at))
        if isinstance(written, str):
            count = _count_meant(written, at)
            hint = f"write {count}, or {{nominal: {count}}}"
            at.refuse(f"is not a number of instances: {shown(written)}", hint)
            return Quota()
        if written is None:
            at.refuse("has no quota", _QUOTA_HINT)
        elif (
            isinstance(written, dict)
            and written.get("nominal") is None
            and written.get("borrowing_limit") is None
        ):
            at.refuse("has neither nominal nor borrowing_limit", _QUOTA_HINT)
        return Keys(Quota).read(written, at)


def _count_meant(written: str, at: Location) -> int:
    """Return the number that a text means; a percentage is worked out where the pool has one type."""
    capacity: Mapping[str, int] = at.around.get("capacity", {}) if at.is_sound("capacity") else {}
    share = _PERCENT.fullmatch(written)
    if share and len(capacity) == 1:
        return int(sum(capacity.values()) * Decimal(share[1]) // 100)
    plain = number_meant(written)
    return int(plain) if plain is not None and plain.isdecimal() else 1
