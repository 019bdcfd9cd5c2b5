"""Who is told what: the one place that knows, and the words."""

from trainmaster.notices.budgets import budget_notice
from trainmaster.notices.changes import errands_of
from trainmaster.notices.rules import not_stopped_notice, rule_violated_notice, unmanaged_notice
from trainmaster.notices.wording import to_tell

__all__ = [
    "budget_notice",
    "errands_of",
    "not_stopped_notice",
    "rule_violated_notice",
    "to_tell",
    "unmanaged_notice",
]
