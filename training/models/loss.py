"""Losses of tokens, and how to compute them without the logits of all tokens at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, Partial, Shard
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from training.config.choices import Compile
from training.config.sections import StepOptions
from training.data.batches import IGNORED, Batch

TokenTerms = Callable[[Tensor, Tensor], Tensor]
"""Function from logits (tokens, vocabulary) and targets (tokens) to fp32 of shape (tokens, 1 or 2)."""


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    if isinstance(logits, DTensor):
        return _divided_terms(logits, targets)[:, :1]
    losses = F.cross_entropy(logits.float(), targets, reduction="none", ignore_index=IGNORED)
    return losses.unsqueeze(1)


def with_z_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the loss and the squared log of the softmax's sum, which keeps logits small (PaLM, 5)."""
    if isinstance(logits, DTensor):
        return _divided_terms(logits, targets)
    logits = logits.float()
    squares = logits.logsumexp(-1).square() * (targets != IGNORED)
    return torch.cat((cross_entropy(logits, targets), squares.unsqueeze(1)), dim=1)


def _divided_terms(logits: DTensor, targets: Tensor) -> Tensor:
    """Return both terms of logits whose words are divided among ranks; they are the same on each rank.

    The ranks exchange two numbers of each token, never its logits.
    """
    mesh = logits.device_mesh
    mine = logits.to_local().float()
    sums = DTensor.from_local(mine.logsumexp(-1, keepdim=True), mesh, [Shard(1)]).full_tensor().logsumexp(-1)
    places = targets - mesh.get_local_rank() * mine.shape[1]
    is_here = (places >= 0) & (places < mine.shape[1])
    picked = mine.gather(1, places.where(is_here, 0).unsqueeze(1)).squeeze(1) * is_here
    losses = sums - DTensor.from_local(picked, mesh, [Partial()]).full_tensor()
    return torch.stack((losses, sums.square()), dim=1) * (targets != IGNORED).unsqueeze(1)


def token_terms(config: StepOptions) -> TokenTerms:
    """Return the function of a token's terms.

    It is compiled if blocks are and logits come in chunks: then the fp32 copy of a chunk is never written.
    """
    terms = with_z_loss if config.z_loss else cross_entropy
    if config.loss_chunk and config.compile is not Compile.NONE:
        return torch.compile(terms, backend=config.compile.value)
    return terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """Arguments of a head that computes the terms of each token itself, chunk by chunk."""

    tokens: int
    """Tokens of a chunk; only one chunk's logits exist at any time, in the backward pass as well."""
    targets: Tensor
    terms: TokenTerms


class Objective(Protocol):
    """Goal of a family's training: the loss of a batch, and how its targets are counted."""

    def outputs(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the model's outputs for a batch."""

    def terms(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Return each target's loss, and what a z loss adds to it: fp32 of shape (targets, 1 or 2)."""

    def counted(self, batch: Batch) -> Tensor:
        """Count the targets that are not left out, in fp64."""

    def hits(self, outputs: Tensor, batch: Batch) -> Tensor | None:
        """Count the targets whose likeliest prediction is right, in fp64; None if that says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextToken:
    """Objective of texts; a batch is tokens, the tokens that follow them, and maybe documents."""

    terms_of: TokenTerms
    chunk: int
    """Tokens whose logits are made at a time; 0: all at once."""

    def outputs(self, model: nn.Module, batch: Batch) -> Tensor:
        inputs, targets, *documents = batch
        chunks = Chunks(tokens=self.chunk, targets=targets, terms=self.terms_of) if self.chunk else None
        return model(inputs, documents[0] if documents else None, chunks)  # type: ignore[no-any-return]  # a module's call has no type

    def terms(self, outputs: Tensor, batch: Batch) -> Tensor:
        return outputs if self.chunk else self.terms_of(outputs.flatten(0, 1), batch[1].flatten())

    def counted(self, batch: Batch) -> Tensor:
        return (batch[1] != IGNORED).sum(dtype=torch.float64)

    def hits(self, _outputs: Tensor, _batch: Batch) -> None:
        """Return None: perplexity says more about texts."""
        return


class Head(nn.Linear):
    """Head that returns logits, or with ``chunks`` the terms of the loss, of shape (tokens, 1 or 2).

    All chunks are computed inside of one call, as FSDP gathers the weights for a call. Each chunk adds its
    share to the weights' gradient in their own precision.
    """

    def forward(self, hidden: Tensor, chunks: Chunks | None = None) -> Tensor:
        if chunks is None:
            return super().forward(hidden)

        def terms(chunk: Tensor, targets: Tensor) -> Tensor:
            return chunks.terms(F.linear(chunk, self.weight), targets)

        flat = (hidden.flatten(0, 1), chunks.targets.flatten())
        parts = zip(*(torch.split(tensor, chunks.tokens) for tensor in flat), strict=True)
        return torch.cat(
            [checkpoint(terms, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
        )
