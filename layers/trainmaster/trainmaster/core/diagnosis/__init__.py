"""Why a training job failed, from the traces it left, and what its owner can do about it."""

from trainmaster.core.diagnosis.diagnosis import FailureEvidence, diagnose

__all__ = ["FailureEvidence", "diagnose"]
