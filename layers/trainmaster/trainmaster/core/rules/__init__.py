"""Rules on every training job: what the policy has against a request, wherever the job came from."""

from trainmaster.core.rules.check import check, longest_runtime
from trainmaster.core.rules.violation import Violation

__all__ = ["Violation", "check", "longest_runtime"]
