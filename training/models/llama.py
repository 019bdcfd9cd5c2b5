"""A decoder-only transformer of the Llama family: RMSNorm, rotary positions, SwiGLU, grouped queries."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from training.presets import ModelShape

ROPE_BASE = 10_000.0
NORM_EPSILON = 1e-5


def rotary_angles(length: int, head_width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines of shape (length, head_width / 2), in fp32 whatever the model's precision."""
    rates = ROPE_BASE ** (-torch.arange(0, head_width, 2, device=device).float() / head_width)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn each pair (i, i + half) of the last dimension by its position's angle; real-valued."""
    left, right = x.float().chunk(2, dim=-1)
    turned = torch.cat((left * cosines - right * sines, right * cosines + left * sines), dim=-1)
    return turned.type_as(x)


class Attention(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.head_width = shape.head_width
        self.query = nn.Linear(shape.width, shape.heads * shape.head_width, bias=False)
        self.key = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.value = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.output = nn.Linear(shape.heads * shape.head_width, shape.width, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        query = rotate(self._heads(self.query(x)), cosines, sines)
        key = rotate(self._heads(self.key(x)), cosines, sines)
        value = self._heads(self.value(x))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.output(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, length, heads * width) to (batch, heads, length, width)."""
        return x.view(*x.shape[:2], -1, self.head_width).transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.output = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(F.silu(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]


class Block(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.attention = Attention(shape)
        self.feed_forward_norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.feed_forward = FeedForward(shape)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cosines, sines)
        return x + self.feed_forward(self.feed_forward_norm(x))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        # A dictionary, not a list: names stay when a part of the blocks is taken out.
        self.blocks = nn.ModuleDict({str(layer): Block(shape) for layer in range(shape.layers)})
        self.norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of shape (batch, length, vocabulary)."""
        cosines, sines = rotary_angles(tokens.shape[1], self.shape.head_width, tokens.device)
        x = self.embedding(tokens)
        for block in self.blocks.values():
            x = block(x, cosines, sines)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


def flops_per_token(shape: ModelShape) -> int:
    """Of a training step, forward and backward: 6 per weight of a matrix, and 12 per layer for attention.

    As PaLM counts (arXiv 2204.02311, appendix B): no discount for the causal mask, embeddings are free, and
    what activation checkpointing computes twice counts once.
    """
    attention = 2 * shape.width * shape.head_width * (shape.heads + shape.kv_heads)
    feed_forward = 3 * shape.width * shape.hidden
    weights = shape.layers * (attention + feed_forward) + shape.width * shape.vocabulary
    mixing = shape.layers * shape.heads * shape.head_width * shape.sequence_length
    return 6 * weights + 12 * mixing
