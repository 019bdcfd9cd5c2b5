"""Sequences of tokens that decoders are trained on, by number: made up, or read from shards."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from training.config.choices import SYNTHETIC
from training.config.environment import CHANNEL, directory_of
from training.config.sections import SampleOptions
from training.data import seed_of
from training.data.blocks import DirectoryPlace, Place
from training.data.token_shards import open_shards
from training.errors import ConfigError

_S3 = "s3://"
_SUCCESSORS = (0.55, 0.25, 0.15, 0.05)
"""Odds of the four tokens that may follow a token: a model that has learned them all reaches the language's
entropy, 1.11 nats a token, from ln(256) = 5.55."""


class Corpus(Protocol):
    """Sequences of tokens by number. Read by one thread at a time."""

    @property
    def vocabulary(self) -> int:
        """Number of different tokens; each token is below it."""

    @property
    def sequences(self) -> int | None:
        """Number of sequences; None if they have no end."""

    @property
    def identity(self) -> str:
        """Digest of the tokens, the same wherever they are stored."""

    @property
    def is_masked(self) -> bool:
        """Tell whether some tokens are not trained."""

    def rows(self, numbers: Sequence[int], length: int) -> Tensor:
        """Return the first ``length`` tokens of these sequences: int64 of shape (numbers, length).

        Raises:
            DataError: They cannot be read, or are not what was written.
        """

    def begins(self, numbers: Sequence[int], length: int, /) -> Tensor | None:
        """Tell for each of the same tokens whether a document begins with it; None if that is unknown."""

    def trained(self, numbers: Sequence[int], length: int, /) -> Tensor | None:
        """Tell for each of the same tokens whether its prediction is trained; None if all are."""


def open_corpus(config: SampleOptions, *, env: Mapping[str, str]) -> Corpus:
    """Open the corpus that ``data`` names, of enough sequences for a step. Raises like ``opened``."""
    return opened(config.data, config, env, option="data", at_least=config.batch_size)


def open_validation(config: SampleOptions, *, env: Mapping[str, str]) -> Corpus | None:
    """Open the corpus that ``eval_data`` names; None if nothing is evaluated. Raises like ``opened``."""
    if not config.eval_every:
        return None
    return opened(config.eval_data or config.data, config, env, option="eval_data", at_least=1)


def opened(data: str, config: SampleOptions, env: Mapping[str, str], *, option: str, at_least: int) -> Corpus:
    """Open a corpus and check all that can be checked without reading its tokens.

    Args:
        data: Value of the option.
        config: Options of the job.
        env: Environment, which has the directories of the job's channels.
        option: Name of the option, for messages.
        at_least: Number of sequences that are needed.

    Raises:
        ConfigError: The option names a channel that the job does not have.
        DataError: The shards are missing, cut short, out of reach or do not fit the model.
    """
    if data == SYNTHETIC:
        return SyntheticLanguage(vocabulary=config.text_shape.vocabulary, seed=config.seed)
    return open_shards(place_of(data, env, option=option), config, at_least=at_least)


def place_of(data: str, env: Mapping[str, str], *, option: str) -> Place:
    if not data.startswith(_S3):
        title = data.replace(CHANNEL, "channel ", 1) if data.startswith(CHANNEL) else data
        return DirectoryPlace(directory_of(data, env, option=option), title=title)
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
        """Return None: the language has no documents."""
        return

    def trained(self, _numbers: Sequence[int], _length: int) -> None:
        """Return None: every token is trained."""
        return

    def sequence(self, number: int, length: int) -> Tensor:
        """Return a sequence of the endless corpus."""
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
        """Tokens that may follow each token, likeliest first."""
        source = torch.Generator().manual_seed(seed_of(self.seed, "language"))
        drawn: list[list[int]] = torch.randint(
            self.vocabulary, (self.vocabulary, len(_SUCCESSORS)), generator=source
        ).tolist()
        return drawn
