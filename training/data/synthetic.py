"""Training data made on the fly: a corpus without end and without files."""

from collections.abc import Sequence
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

    @property
    def sequences(self) -> None:
        """It has no end."""
        return

    @property
    def identity(self) -> str:
        return "synthetic"

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        return torch.stack([self.sequence(number, length) for number in numbers])

    def sequence(self, number: int, length: int) -> Tensor:
        """Sequence ``number`` of the endless corpus."""
        source = torch.Generator().manual_seed(seed_of(self.seed, "sequence", number))
        bounds = torch.tensor(_SUCCESSORS).cumsum(0)[:-1]
        choices = torch.bucketize(torch.rand(length, generator=source), bounds).tolist()
        token = int(torch.randint(self.vocabulary, (), generator=source))
        followers = self._followers
        tokens = []
        for choice in choices:
            tokens.append(token)
            token = followers[token][choice]
        return torch.tensor(tokens)

    @cached_property
    def _followers(self) -> list[list[int]]:
        """Row t: the tokens that may follow t, likeliest first."""
        source = torch.Generator().manual_seed(seed_of(self.seed, "language"))
        drawn: list[list[int]] = torch.randint(
            self.vocabulary, (self.vocabulary, len(_SUCCESSORS)), generator=source
        ).tolist()
        return drawn
