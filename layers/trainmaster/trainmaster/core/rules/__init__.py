"""Rules on every training job: the policy's objections to a request, wherever the job came from."""

from trainmaster.core.rules.check import check, longest_runtime
from trainmaster.core.rules.violation import Violation

__all__ = ["Violation", "check", "longest_runtime"]
