"""Bounds of the policy that a submission exceeds and no waiting lifts: the job could never start.

Jobs that were stored before a bound was set wait on; ``planning`` decides about them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain

from trainmaster.core.costs.ledger import budget_cents
from trainmaster.core.costs.prices import cost_cents, usd_text
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, Vector, fits, vector_text
from trainmaster.core.planning.budgets import as_spot
from trainmaster.core.planning.capacity import pool_vector
from trainmaster.core.planning.loans import beyond_quota, on_demand_part, why_fixed
from trainmaster.core.policy import AtLimit, Budget, Policy, PoolPolicy, Quota
from trainmaster.core.policy.plan_windows import why_never_opens
from trainmaster.core.request.request import Ask
from trainmaster.core.submission.request_places import Places

RULE_NEVER_FITS = "never-fits"
RULE_NO_POOL = "no-pool"
RULE_ONE_POOL = "one-pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds on a submission of one team in one pool."""

    ask: Ask
    team: str
    pool: PoolPolicy
    policy: Policy
    places: Places
    """Paths of the request's fields."""

    def violations(self) -> Iterator[FieldError]:
        """Yield every bound that is exceeded.

        A shape above the capacity is named even where another one could start: it is nearly always a slip of
        the finger, and would only make a lane of its own for passes to look at. By quota and budget a list of
        shapes is refused only if each of them is.
        """
        numbers = range(len(self.ask.shapes))
        above = [list(self._above_capacity(number)) for number in numbers]
        others = [
            [] if self._fits_a_plan(number) else [*self._by_quota(number), *self._by_budget(number)]
            for number in numbers
        ]
        yield from chain.from_iterable(above)
        # Otherwise at least one shape is within all bounds, and the job may start in that.
        if all(above[number] or others[number] for number in numbers):
            yield from dict.fromkeys(chain.from_iterable(others))

    def _error(self, field: str, message: str, hint: str) -> FieldError:
        return FieldError(field=field, message=message, hint=hint, rule=RULE_NEVER_FITS)

    @property
    def _capacity(self) -> Mapping[Capacity, int]:
        return pool_vector(replace(self.pool, capacity=self.pool.most_capacity))

    # ---- the pool

    def _above_capacity(self, number: int) -> Iterator[FieldError]:
        for capacity, count in sorted(self.ask.shapes[number].vector.items()):
            if capacity.is_plan:
                continue  # ``plan_refusals`` knows what plans have
            if count > self._capacity.get(capacity, 0) and not self._fits_a_plan(number):
                yield self._too_many(number, capacity, count)

    def _fits_a_plan(self, number: int) -> bool:
        """Tell whether the shape may start on a plan; one that is not described yet may have room for it."""
        shape, seen = self.ask.shapes[number], self.pool.seen_plans
        if self.ask.choice is not Choice.FIRST_FIT or len(shape.vector) > 1 or shape.avoids_plans:
            return False
        ((capacity, count),) = shape.vector.items()
        return any(
            plan.arn not in seen for plan in self.pool.plans if plan.is_open_to(self.team)
        ) or count <= self._most_on_a_plan(capacity)

    def _most_on_a_plan(self, capacity: Capacity) -> int:
        """Return how many instances of the type one plan has that may still open a window for the team."""
        return max(
            (
                plan.total
                for entry, plan in self.pool.known_plans
                if plan.instance_type == capacity.instance_type
                and entry.is_open_to(self.team)
                and why_never_opens(plan) is None
            ),
            default=0,
        )

    def _too_many(self, number: int, capacity: Capacity, count: int) -> FieldError:
        there, kind = self._capacity.get(capacity, 0), capacity.capacity_type.value
        on_a_plan = 0 if self.ask.shapes[number].avoids_plans else self._most_on_a_plan(capacity)
        most = max(there, on_a_plan)
        fewer = f"ask for at most {most}" if most else f"the pool has no {kind} instances of this type"
        has = f"{there} {kind} {capacity.instance_type}"
        has += f", and {on_a_plan} on a training plan," if on_a_plan else ""
        subject = self._subject(number)
        return self._error(
            self.places.count_of(number, capacity.instance_type),
            f"{subject}asks for {count}, but pool {self.pool.name} has {has} in all",
            f"{fewer}, or leave it out of the list" if subject else fewer,
        )

    def _subject(self, number: int) -> str:
        """Name the shape that is meant, if the job has several."""
        shapes = self.ask.shapes
        return f"{vector_text(shapes[number].vector)} " if len(shapes) > 1 else ""

    # ---- the team's quota

    def _by_quota(self, number: int) -> Iterator[FieldError]:
        """Yield what exceeds loans or the borrowing limit; quotas count on-demand instances alone."""
        if self.pool.quotas and not self._always_runs_as_spot(self.ask.shapes[number]):
            vector, quota = self.ask.shapes[number].vector, self.pool.quotas.get(self.team, Quota())
            refusal = self._not_own(number, vector, quota) or self._beyond_limit(number, vector, quota)
            if refusal is not None:
                yield refusal

    def _not_own(self, number: int, vector: Vector, quota: Quota) -> FieldError | None:
        why = why_fixed(
            preemptible=self.ask.options.preemptible,
            has_checkpoint=self.ask.checkpoint_uri is not None,
            rules=self.pool.preemption,
        )
        capacity = beyond_quota(quota.nominal, vector) if why is not None else None
        if capacity is None:
            return None
        nominal = quota.nominal.get(capacity.instance_type, 0)
        let = "leave the tag out" if not self.ask.options.preemptible else "give a CheckpointConfig"
        fewer = f"ask for at most {nominal}, or " if nominal else ""
        return self._error(
            self.places.count_of(number, capacity.instance_type),
            f"{self._subject(number)}asks for {vector[capacity]}, but the quota of team {self.team} in pool"
            f" {self.pool.name} is {nominal} {capacity.instance_type}, and a job that cannot be stopped may"
            f" not run on borrowed instances ({why})",
            f"{fewer}{let} so that it may borrow, or have an admin raise the quota",
        )

    def _beyond_limit(self, number: int, vector: Vector, quota: Quota) -> FieldError | None:
        for capacity, count in sorted(on_demand_part(vector).items()):
            limit = (quota.borrowing_limit or {}).get(capacity.instance_type)
            nominal = quota.nominal.get(capacity.instance_type, 0)
            if limit is None or count <= nominal + limit:
                continue
            most = nominal + limit
            fewer = f"ask for at most {most}, or " if most else ""
            return self._error(
                self.places.count_of(number, capacity.instance_type),
                f"{self._subject(number)}asks for {count}, but team {self.team} may use {most}"
                f" {capacity.instance_type} of pool {self.pool.name}: its quota of {nominal} and a borrowing"
                f" limit of {limit}",
                f"{fewer}have an admin raise pools.{self.pool.name}.quotas.{self.team}",
            )
        return None

    # ---- the team's budget

    def _by_budget(self, number: int) -> Iterator[FieldError]:
        """Yield what the budget never covers.

        A start reserves all of MaxRuntimeInSeconds, at the on-demand price.
        """
        team, shape = self.policy.team(self.team), self.ask.shapes[number]
        if team is None or team.budget is None or self._runs_as_spot(shape, team.budget):
            return
        limit = budget_cents(team.budget.usd_per_month)
        rate, cents = self._worst_case(shape)
        if rate is None or cents is None:
            yield self._without_a_price(limit)
        elif cents > limit:
            yield self._too_dear(rate, cents, limit)

    def _worst_case(self, shape: Shape) -> tuple[Decimal | None, int | None]:
        """Return USD an hour, and cents in all; None if a price is unknown."""
        rate = self.policy.price_table.vector_usd_per_hour(shape.vector)
        return rate, cost_cents(rate, self.ask.max_runtime)

    def _always_runs_as_spot(self, shape: Shape) -> bool:
        """Tell whether no month of the team covers it on demand, so that the budget moves it to spot."""
        team = self.policy.team(self.team)
        if team is None or team.budget is None or not self._runs_as_spot(shape, team.budget):
            return False
        _, cents = self._worst_case(shape)
        return cents is None or cents > budget_cents(team.budget.usd_per_month)

    def _runs_as_spot(self, shape: Shape, budget: Budget) -> bool:
        """Tell whether a month with anything left suffices for it (``at_limit: spot``)."""
        if budget.at_limit is not AtLimit.SPOT:
            return False
        if shape.capacity_type is CapacityType.SPOT:
            return True
        may_move = self.ask.checkpoint_uri is not None and self.ask.choice is Choice.FIRST_FIT
        return may_move and fits(as_spot(shape).vector, self._capacity)

    def _without_a_price(self, limit: int) -> FieldError:
        return self._error(
            "ResourceConfig",
            f"has a type without a price, and team {self.team} has a budget of {usd_text(limit)} a month",
            "use another type, or ask an admin to write its price into the policy's prices",
        )

    def _too_dear(self, usd_per_hour: Decimal, cents: int, limit: int) -> FieldError:
        seconds = int(Decimal(limit) / 100 / usd_per_hour * 3600)
        less = f"ask for at most {seconds} s or for fewer instances" if seconds else "ask for fewer instances"
        return self._error(
            self.places.RUNTIME,
            f"is {int(self.ask.max_runtime.total_seconds())}: the job may cost up to {usd_text(cents)}, more"
            f" than the {usd_text(limit)} that team {self.team} has for a whole month",
            f"{less}, or ask an admin for a larger budget",
        )


def no_pool(places: Places, instance_type: str, policy: Policy) -> FieldError:
    known = sorted(name for pool in policy.pools for name in pool.instance_types)
    hint = f"use one of: {', '.join(known)}" if known else "the policy has no pools yet; ask an admin for one"
    return FieldError(
        field=places.type_of(instance_type),
        message=f"{instance_type} belongs to no pool",
        hint=hint,
        rule=RULE_NO_POOL,
    )


def two_pools(types: list[str], policy: Policy) -> FieldError:
    owners = {pool.name for name in types if (pool := policy.pool_of([name]))}
    return FieldError(
        field="ResourceConfig",
        message=f"{', '.join(types)} belong to different pools: {', '.join(sorted(owners))}",
        hint="use instance types of one pool",
        rule=RULE_ONE_POOL,
    )
