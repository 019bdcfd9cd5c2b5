"""Makes token shards: `python -m training.prepare --input texts --output corpus`; as a script, in a job too.

Nothing is downloaded: texts are tokenised as bytes, and whoever has a tokenizer brings its token ids. The
same input gives the same shards. The folder is what a job reads: upload it as it is.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

if not __package__:  # started as a script: train.py beside it names this folder `training`
    importlib.import_module("train")

from training.config import directory_of
from training.data.index import TokenDtype
from training.data.inputs import Texts, TokenFiles, TokenSource, files_under
from training.data.writer import ShardWriter, empty_corpus
from training.errors import ConfigError, DataError, TrainingError, report_failure

_SHARD_TOKENS = 2**27


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    asked = _parser().parse_args(arguments)
    try:
        for line in _prepared(asked):
            print(line, flush=True)
    except TrainingError as error:
        report_failure(error, os.environ)
        return 1
    except OSError as error:
        place = str(error.filename or asked.output)
        remedy = "there is no corpus without its index: make room or give rights, and start again"
        problem = error.strerror or type(error).__name__
        report_failure(DataError(place=place, problem=problem, remedy=remedy), os.environ)
        return 1
    return 0


def _prepared(asked: argparse.Namespace) -> Iterator[str]:
    """Write the corpora; a line for each."""
    source = _source(asked)
    parts = [
        (
            ShardWriter(
                empty_corpus(directory),
                dtype=source.dtype,
                vocabulary=source.vocabulary,
                shard_tokens=asked.shard_tokens,
            ),
            tokens,
        )
        for directory, tokens in _parts(asked, source)
    ]
    _pour(source, parts)
    for writer, _ in parts:
        index = writer.publish()
        tokens = sum(shard.tokens for shard in index.shards)
        yield (
            f"{writer.directory}: {tokens} tokens of a vocabulary of {index.vocabulary} "
            f"in {len(index.shards)} shards"
        )


def _source(asked: argparse.Namespace) -> TokenSource:
    files = files_under([directory_of(one, os.environ, option="input") for one in asked.input])
    if asked.tokens is None:
        return Texts(files)
    if asked.vocabulary is None:
        raise ConfigError(["--tokens needs --vocabulary: how many tokens their tokenizer has"])
    return TokenFiles(files, raw_dtype=asked.tokens, vocabulary=asked.vocabulary)


def _parts(asked: argparse.Namespace, source: TokenSource) -> list[tuple[Path, int | None]]:
    """Each corpus to write and its tokens; None: all the rest."""
    if not asked.validation_share:
        return [(asked.output, None)]
    tokens = source.tokens()
    training = round(tokens * (1 - asked.validation_share))
    if training in {0, tokens}:
        raise ConfigError(
            [f"--validation-share {asked.validation_share} of {tokens} tokens leaves one part empty"]
        )
    return [(asked.output / "train", training), (asked.output / "validation", None)]


def _pour(source: TokenSource, parts: Sequence[tuple[ShardWriter, int | None]]) -> None:
    """The stream into the first corpus until it has its tokens, then into the next."""
    rest = iter(parts)
    writer, tokens = next(rest)
    room = None if tokens is None else tokens * source.dtype.bytes
    for data in source.stream():
        view = memoryview(data)
        while room is not None and len(view) > room:
            writer.write(view[:room])
            view = view[room:]
            writer, tokens = next(rest)
            room = None if tokens is None else tokens * source.dtype.bytes
        writer.write(view)
        room = None if room is None else room - len(view)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="training.prepare", description=__doc__)
    parser.add_argument(
        "--input", nargs="+", required=True, help="files, directories (all below) or channel:NAME"
    )
    parser.add_argument("--output", type=Path, required=True, help="an empty directory, or none yet")
    # Script mode writes hyperparameters as they are named, with underscores.
    parser.add_argument(
        "--shard-tokens", "--shard_tokens", type=_count, default=_SHARD_TOKENS, help="tokens of a shard"
    )
    parser.add_argument(
        "--validation-share",
        "--validation_share",
        type=_share,
        default=0.0,
        help="the last share of all tokens becomes a corpus of its own: OUTPUT/train, OUTPUT/validation",
    )
    parser.add_argument(
        "--tokens", type=TokenDtype, choices=list(TokenDtype), help="input is token ids; raw files of this"
    )
    parser.add_argument("--vocabulary", type=_count, help="with --tokens: size of their tokenizer's")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text!r}")
    return int(text)


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) < 1:
            return value
    raise argparse.ArgumentTypeError(f"must be a share, 0 or more and below 1, not {text!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
