"""Training data made on the fly: which tokens a step sees follows from seed, step and rank alone.

So nothing of it is in a checkpoint, and a resumed run sees what the uninterrupted one would have seen.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from training.seeds import seed_of

_SUCCESSORS = (0.55, 0.25, 0.15, 0.05)
"""A token is followed by one of four, with these odds: a model that has learned them all reaches the
language's entropy, 1.11 nats a token, from ln(256) = 5.55."""


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property needs the dictionary
class SyntheticLanguage:
    """A made-up language of the first order: the next token depends on the one before it."""

    vocabulary: int
    seed: int

    @cached_property
    def _followers(self) -> Tensor:
        """Row t: the tokens that may follow t, likeliest first."""
        source = torch.Generator().manual_seed(seed_of(self.seed, "language"))
        return torch.randint(self.vocabulary, (self.vocabulary, len(_SUCCESSORS)), generator=source)

    def sequence(self, number: int, length: int) -> Tensor:
        """Sequence ``number`` of the endless corpus."""
        source = torch.Generator().manual_seed(seed_of(self.seed, "sequence", number))
        bounds = torch.tensor(_SUCCESSORS).cumsum(0)[:-1]
        choices = torch.bucketize(torch.rand(length, generator=source), bounds).tolist()
        token = int(torch.randint(self.vocabulary, (), generator=source))
        followers = self._followers.tolist()
        tokens = []
        for choice in choices:
            tokens.append(token)
            token = followers[token][choice]
        return torch.tensor(tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """Step s takes sequences [s * size, (s + 1) * size) and each rank its slice of them.

    The batch of a step is the same whatever the number of ranks.
    """

    language: SyntheticLanguage
    sequence_length: int
    size: int
    """Sequences per step, over all ranks."""
    rank: int
    ranks: int

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """The inputs and the tokens that follow them, both of shape (sequences, sequence_length)."""
        share = self.size // self.ranks
        first = step * self.size + self.rank * share
        rows = [self.language.sequence(first + row, self.sequence_length + 1) for row in range(share)]
        tokens = torch.stack(rows)
        return tokens[:, :-1], tokens[:, 1:]
