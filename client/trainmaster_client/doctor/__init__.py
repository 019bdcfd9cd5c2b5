"""What ``trainmaster doctor`` looks at, from the configuration to the account, and what it makes of it."""

from trainmaster_client.doctor.checks import STEPS, examine
from trainmaster_client.doctor.findings import Finding

__all__ = ["STEPS", "Finding", "examine"]
