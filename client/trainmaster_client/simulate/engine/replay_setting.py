"""The setting all pools of a replay share: policy, event queue, the account's bounds, budgets."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from trainmaster.core.policy import Policy

from trainmaster_client.simulate.engine.event_queue import EventQueue
from trainmaster_client.simulate.engine.past_jobs import AccountBounds, Pace
from trainmaster_client.simulate.engine.simulated_sagemaker import SimulatedSageMaker
from trainmaster_client.simulate.engine.team_budgets import TeamBudgets


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The setting that all pools of a replay share."""

    policy: Policy
    begins: datetime
    pace: Pace
    event_queue: EventQueue
    account: AccountBounds
    budgets: TeamBudgets
    cpu_clock: Callable[[], float]

    def fork(self) -> "Setting":
        """Copy the setting, for copies of its pools that go their own way."""
        return replace(self, event_queue=self.event_queue.fork(), budgets=self.budgets.fork())

    def sagemaker_of(self, pool: str) -> SimulatedSageMaker:
        return SimulatedSageMaker(
            pool=pool, begins=self.begins, pace=self.pace, event_queue=self.event_queue, account=self.account
        )

    @cached_property
    def never_retries(self) -> Policy:
        recovery = replace(self.policy.governing.recovery, max_retries=0)
        return replace(self.policy, governing=replace(self.policy.governing, recovery=recovery))
