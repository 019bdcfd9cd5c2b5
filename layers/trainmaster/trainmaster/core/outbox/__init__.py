"""Notices: the one place that decides which team is notified of what, and in which words."""

from trainmaster.core.outbox.derive import messages_of
from trainmaster.core.outbox.texts.arrays_and_dependents import (
    array_ended_notice,
    array_held_notice,
    dependents_ended_notice,
    held_text,
)
from trainmaster.core.outbox.texts.platform import (
    checkpoints_unreadable_notice,
    plan_unreadable_notice,
    plan_unusable_notice,
    warm_pool_not_kept_notice,
)
from trainmaster.core.outbox.texts.refusals import (
    additions_refused_notice,
    platform_notice,
    warm_pools_not_matched_notice,
)
from trainmaster.core.outbox.texts.rules_and_budgets import (
    budget_notice,
    not_stopped_notice,
    rule_violated_notice,
    unmanaged_notice,
)
from trainmaster.core.outbox.texts.wording import to_tell

__all__ = [
    "additions_refused_notice",
    "array_ended_notice",
    "array_held_notice",
    "budget_notice",
    "checkpoints_unreadable_notice",
    "dependents_ended_notice",
    "held_text",
    "messages_of",
    "not_stopped_notice",
    "plan_unreadable_notice",
    "plan_unusable_notice",
    "platform_notice",
    "rule_violated_notice",
    "to_tell",
    "unmanaged_notice",
    "warm_pool_not_kept_notice",
    "warm_pools_not_matched_notice",
]
