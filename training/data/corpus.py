"""What is trained on: sequences of tokens by number, made up or read from shards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from training.config import TrainConfig
from training.config.choices import SYNTHETIC
from training.config.environment import CHANNEL, directory_of
from training.data import seed_of
from training.data.blocks import DirectoryPlace, Place
from training.data.token_shards import open_shards
from training.errors import ConfigError

_S3 = "s3://"
_SUCCESSORS = (0.55, 0.25, 0.15, 0.05)
"""A token is followed by one of four, with these odds: a model that has learned them all reaches the
language's entropy, 1.11 nats a token, from ln(256) = 5.55."""


class Corpus(Protocol):
    """Sequences of tokens by number. Read by one thread at a time."""

    @property
    def vocabulary(self) -> int:
        """Its tokens are below this."""

    @property
    def sequences(self) -> int | None:
        """How many there are; None: without end."""

    @property
    def identity(self) -> str:
        """The same wherever it lies, another for other tokens."""

    @property
    def is_masked(self) -> bool:
        """Not every token is trained."""

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        """The first ``length`` tokens of these sequences, int64, of shape (numbers, length).

        Raises:
            DataError: They cannot be read, or are not what was written.
        """

    def begins(self, numbers: Sequence[int], length: int, /) -> Tensor | None:
        """Of the same tokens: whether a document begins with it; None: it does not know."""

    def trained(self, numbers: Sequence[int], length: int, /) -> Tensor | None:
        """Of the same tokens: whether its prediction is trained; None: every one is."""


def open_corpus(config: TrainConfig, *, env: Mapping[str, str]) -> Corpus:
    """Open what ``data`` names; of its sequences a step must not need more than there are. As ``opened``."""
    return opened(config.data, config, env, option="data", at_least=config.batch_size)


def open_validation(config: TrainConfig, *, env: Mapping[str, str]) -> Corpus | None:
    """What ``eval_data`` names; None: nothing is evaluated. As ``opened``."""
    if not config.eval_every:
        return None
    return opened(config.eval_data or config.data, config, env, option="eval_data", at_least=1)


def opened(data: str, config: TrainConfig, env: Mapping[str, str], *, option: str, at_least: int) -> Corpus:
    """Open and check all that can be checked without reading the tokens.

    Raises:
        ConfigError: The option names what this job does not have.
        DataError: The shards are missing, cut short, out of reach or do not fit the model.
    """
    if data == SYNTHETIC:
        return SyntheticLanguage(vocabulary=config.text_shape.vocabulary, seed=config.seed)
    return open_shards(place_of(data, env, option=option), config, at_least=at_least)


def place_of(data: str, env: Mapping[str, str], *, option: str) -> Place:
    if not data.startswith(_S3):
        told = data.replace(CHANNEL, "channel ", 1) if data.startswith(CHANNEL) else data
        return DirectoryPlace(directory_of(data, env, option=option), title=told)
    if find_spec("boto3") is None:
        raise ConfigError([f"{option} {data} needs boto3: add it to requirements.txt beside train.py"])
    from training.data.s3 import s3_place  # noqa: PLC0415  only here is boto3 needed

    return s3_place(data)


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property needs the dictionary
class SyntheticLanguage:
    """A made-up language of the first order: the next token depends on the one before it."""

    vocabulary: int
    seed: int
    sequences: ClassVar = None
    """It has no end."""
    identity: ClassVar = "synthetic"
    is_masked: ClassVar = False

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        return torch.stack([self.sequence(number, length) for number in numbers])

    def begins(self, _numbers: Sequence[int], _length: int) -> None:
        """It has no documents."""
        return

    def trained(self, _numbers: Sequence[int], _length: int) -> None:
        """Every token is."""
        return

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
