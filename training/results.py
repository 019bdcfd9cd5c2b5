"""What a finished job leaves in its model directory, which SageMaker packs as model.tar.gz."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


def gathered_weights(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter whole, fp32, on the CPU; every rank must call."""
    weights = {}
    for name, parameter in model.named_parameters():
        assert isinstance(parameter, DTensor)
        weights[name] = parameter.full_tensor().detach().cpu()
    return weights


def write_results(directory: Path, *, weights: Mapping[str, Tensor], metrics: Mapping[str, object]) -> None:
    torch.save(dict(weights), directory / "model.pt")
    (directory / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
