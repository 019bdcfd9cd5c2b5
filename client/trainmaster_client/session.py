"""``QueueTrainingJobSession`` of the SageMaker SDK v2, where its users import it."""

from trainmaster_client.sdk.v2_session import QueueTrainingJobSession, WaitInterruptedError

__all__ = ["QueueTrainingJobSession", "WaitInterruptedError"]
