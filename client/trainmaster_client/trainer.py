"""``queue``, ``attach`` and ``use_launcher`` for the SageMaker SDK v3, where its users import them."""

from trainmaster_client.sdk.v3_trainer import attach, queue, use_launcher

__all__ = ["attach", "queue", "use_launcher"]
