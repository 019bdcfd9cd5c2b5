"""The loss line and the definitions by which SageMaker reads it. No torch here: clients import this."""

from dataclasses import dataclass

_NUMBER = r"([0-9.eE+-]+)"

METRIC_DEFINITIONS: list[dict[str, str]] = [
    # The leading space keeps e.g. val_loss= from matching.
    {"Name": "train:loss", "Regex": rf" loss={_NUMBER}"},
    {"Name": "train:lr", "Regex": rf" lr={_NUMBER}"},
    {"Name": "train:tokens_per_s", "Regex": rf" tokens_per_s={_NUMBER}"},
]
"""For ``metric_definitions=`` of an estimator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    step: int
    steps: int
    loss: float
    """Nats per token over the batch of this step, over all ranks."""
    lr: float
    tokens_per_s: float
    """Over all ranks, since the line before."""

    def line(self) -> str:
        """Plain ASCII, for CloudWatch's regular expressions."""
        return (
            f"[step {self.step}/{self.steps}] loss={self.loss:.9f} lr={self.lr:.6e} "
            f"tokens_per_s={self.tokens_per_s:.0f}"
        )
