"""Rules on every training job: what the policy has against a request, wherever the job came from."""

from trainmaster.governance.check import check
from trainmaster.governance.violations import Violation

__all__ = ["Violation", "check"]
