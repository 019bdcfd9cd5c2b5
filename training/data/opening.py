"""From the option ``data`` to a corpus that can feed this training, or one clear refusal."""

from collections.abc import Mapping
from importlib.util import find_spec

from training.channels import PREFIX, directory_of
from training.config import SYNTHETIC, TrainConfig
from training.data.batches import Corpus
from training.data.places import DirectoryPlace, Place
from training.data.synthetic import SyntheticLanguage
from training.data.token_shards import TokenShards
from training.errors import ConfigError, DataError
from training.shards.index import INDEX, ShardIndex, parse_index

_S3 = "s3://"
_SHOWN = 3
"""Names in a message; a failure file has room for 1,024 characters."""


def open_corpus(config: TrainConfig, *, env: Mapping[str, str]) -> Corpus:
    """Open what ``data`` names and check all that can be checked without reading the tokens.

    Raises:
        ConfigError: The option names what this job does not have.
        DataError: The shards are missing, cut short, out of reach or do not fit the model.
    """
    if config.data == SYNTHETIC:
        return SyntheticLanguage(vocabulary=config.shape.vocabulary, seed=config.seed)
    return open_shards(_place(config.data, env), config)


def open_shards(place: Place, config: TrainConfig) -> TokenShards:
    sizes = place.sizes()
    if INDEX not in sizes:
        raise DataError(place=place.told, problem=f"there is no {INDEX}", remedy=_remedy(place))
    index = parse_index(place.read(INDEX, 0, sizes[INDEX]), place=place.told)
    _check_files(place, index, sizes)
    _check_fit(place, index, config)
    corpus = TokenShards(place, index, sequence_length=config.shape.sequence_length)
    if corpus.sequences < config.batch_size:
        raise DataError(
            place=place.told,
            problem=f"it has {corpus.sequences} sequences of {config.shape.sequence_length} tokens, "
            f"a step needs batch_size {config.batch_size}",
            remedy="lower batch_size or sequence_length, or prepare more data",
        )
    return corpus


def _place(data: str, env: Mapping[str, str]) -> Place:
    if not data.startswith(_S3):
        told = data.replace(PREFIX, "channel ", 1) if data.startswith(PREFIX) else data
        return DirectoryPlace(directory_of(data, env, option="data"), told=told)
    if find_spec("boto3") is None:
        raise ConfigError([f"data {data} needs boto3: add it to requirements.txt beside train.py"])
    from training.data.s3 import s3_place  # noqa: PLC0415  only here is boto3 needed

    return s3_place(data)


def _check_files(place: Place, index: ShardIndex, sizes: Mapping[str, int]) -> None:
    wanted = {shard.name: shard.bytes for shard in index.shards}
    if missing := sorted(wanted.keys() - sizes.keys()):
        raise DataError(
            place=place.told,
            problem=f"{len(missing)} of {len(wanted)} shards are missing: {_some(missing)}",
            remedy=_remedy(place),
        )
    wrong = [
        f"{name} has {sizes[name]} bytes of {size}" for name, size in wanted.items() if sizes[name] != size
    ]
    if wrong:
        raise DataError(
            place=place.told,
            problem=f"{len(wrong)} of {len(wanted)} shards do not have their size: {_some(wrong)}",
            remedy="copy them again from where they were prepared",
        )


def _check_fit(place: Place, index: ShardIndex, config: TrainConfig) -> None:
    shape = config.shape
    if index.vocabulary > shape.vocabulary:
        raise DataError(
            place=place.told,
            problem=f"its vocabulary of {index.vocabulary} tokens is larger than the {shape.vocabulary} "
            f"of preset {config.preset}",
            remedy="choose a preset with that vocabulary, or prepare the data with the model's tokenizer",
        )
    longest = max(shard.tokens for shard in index.shards)
    if longest <= shape.sequence_length:
        raise DataError(
            place=place.told,
            problem=f"no shard holds a sequence of {shape.sequence_length} tokens and the one that "
            f"follows: the longest has {longest}",
            remedy="lower sequence_length, or prepare it with larger --shard-tokens",
        )


def _remedy(place: Place) -> str:
    if isinstance(place, DirectoryPlace):
        return (
            "give the whole folder that python -m training.prepare wrote; a channel needs "
            "S3DataDistributionType FullyReplicated (ShardedByS3Key gives each host a part of the files) "
            "and InputMode FastFile or File"
        )
    return "upload the whole folder that python -m training.prepare wrote"


def _some(names: list[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
