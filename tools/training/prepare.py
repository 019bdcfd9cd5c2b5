"""Makes token shards: `python -m tools.training.prepare --input texts --output corpus`; also as a job.

Nothing is downloaded: texts are tokenised as bytes, or by a tokenizer.json of yours; or you bring token ids.
The same input gives the same shards. The folder is what a job reads: upload it as it is.
"""

import argparse
import os
import sys
import tarfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain, islice
from pathlib import Path

if not __package__:  # started as a script: what it imports lies two folders up
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tools.training.documents import JSON_LINES, ByteTokenizer, DocumentFiles, Packed, Tally
from tools.training.inputs import PARQUET, Texts, TokenFiles, TokenSource, files_under
from tools.training.tokenizer import FileTokenizer
from tools.training.writer import Layout, Part, ShardWriter, empty_corpus
from training.config.environment import directory_of
from training.data.index import TokenDtype
from training.errors import ConfigError, DataError, TrainingError, report_failure

_SHARD_TOKENS = 2**27


def main(arguments: Sequence[str]) -> int:
    """Run the program, and return the exit code."""
    options = _parser().parse_args(arguments)
    remedy = "there is no corpus without its index: make room or give rights, and start again"
    return finished(_prepared(options), options.output, remedy=remedy)


def finished(lines: Iterable[str], place: object, *, remedy: str) -> int:
    """Print the lines, whose making is the work, and return the exit code.

    A failure is reported as that of a job is.
    """
    try:
        for line in lines:
            print(line, flush=True)
    except TrainingError as error:
        report_failure(error, os.environ)
        return 1
    except (OSError, tarfile.TarError) as error:
        at = str(getattr(error, "filename", None) or place)
        problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
        report_failure(DataError(place=at, problem=problem, remedy=remedy), os.environ)
        return 1
    return 0


def _prepared(options: argparse.Namespace) -> Iterator[str]:
    """Write the corpora; yield a line for each."""
    files = files_under([directory_of(place, os.environ, option="input") for place in options.input])
    if options.tokens is not None:
        if options.vocabulary is None:
            raise ConfigError(["--tokens needs --vocabulary: how many tokens their tokenizer has"])
        if options.tokenizer or options.pack or options.column:
            raise ConfigError(["--tokens is for token ids; --tokenizer, --pack and --column are for texts"])
        yield from _streamed(
            options, TokenFiles(files, raw_dtype=options.tokens, vocabulary=options.vocabulary)
        )
        return
    if options.column and not any(path.suffix == PARQUET for path in files):
        raise ConfigError([f"--column {options.column} is of {PARQUET} files, and --input has none"])
    if not (options.tokenizer or options.pack or any(path.suffix in {JSON_LINES, PARQUET} for path in files)):
        yield from _streamed(options, Texts(files))
        return
    tokenizer = (
        FileTokenizer(options.tokenizer, end=options.end_token) if options.tokenizer else ByteTokenizer()
    )
    ignored = {name for names in options.ignore for name in names.split(",")}
    source = DocumentFiles(files, tokenizer, column=options.column, ignored=ignored)
    yield from _by_document(options, source)


def _streamed(options: argparse.Namespace, source: TokenSource) -> Iterator[str]:
    """Write the stream into the first corpus until it has its tokens, then into the next."""
    first = _training_share(options, source.tokens(), "tokens") if options.validation_share else None
    layout = _layout(options, source.vocabulary, documents=source.documents)
    rest = iter(_writers(options, layout))
    writers, left = [next(rest)], first
    for part in source.stream():
        while left is not None and len(part.tokens) > left * layout.dtype.bytes:
            now, part = part.cut(left, layout.dtype.bytes)  # noqa: PLW2901  the rest of it
            writers[-1].write(now)
            writers, left = [*writers, next(rest)], None
        writers[-1].write(part)
        left = None if left is None else left - len(part.tokens) // layout.dtype.bytes
    for writer in [*writers, *rest]:
        yield _told(writer)


def _by_document(options: argparse.Namespace, source: DocumentFiles) -> Iterator[str]:
    """Write each document whole into one corpus or the other: shares are of their bytes."""
    first = _training_documents(options, list(source.sizes())) if options.validation_share else None
    documents = source.documents()
    tokenizer = source.tokenizer
    layout = _layout(options, tokenizer.vocabulary, documents=True, pad=tokenizer.pad)
    for writer, count in zip(_writers(options, layout), (first, None), strict=False):
        tally = Tally()
        counted = tally.counted(islice(documents, count))
        packed = Packed(length=options.pack, pad=tokenizer.pad) if options.pack else None
        for document in chain.from_iterable(packed.sequences(counted)) if packed else counted:
            writer.write(Part(tokens=document.as_bytes(layout.dtype), begins=True, trained=document.trained))
        yield "; ".join([_told(writer), tally.told(), *([packed.told()] if packed else [])])


def _layout(
    options: argparse.Namespace, vocabulary: int, *, documents: bool, pad: int | None = None
) -> Layout:
    return Layout(
        dtype=TokenDtype.of(vocabulary),
        vocabulary=vocabulary,
        shard_tokens=options.shard_tokens,
        documents=documents,
        masked=pad is not None,
        packed=options.pack,
        pad=pad or 0,
    )


def _writers(options: argparse.Namespace, layout: Layout) -> list[ShardWriter]:
    shares = ("train", "validation") if options.validation_share else (".",)
    return [ShardWriter(empty_corpus(options.output / name), layout) for name in shares]


def _training_share(options: argparse.Namespace, whole: int, what: str) -> int:
    training: int = round(whole * (1 - options.validation_share))
    if training in {0, whole}:
        raise ConfigError(
            [f"--validation-share {options.validation_share} of {whole} {what} leaves one part empty"]
        )
    return training


def _training_documents(options: argparse.Namespace, sizes: Sequence[int]) -> int:
    share = _training_share(options, sum(sizes), f"bytes in {len(sizes)} documents")
    if len(sizes) == 1:
        raise ConfigError(["--validation-share is of whole documents, and there is only one"])
    return min(max(1, bisect_left(list(accumulate(sizes)), share)), len(sizes) - 1)


def _told(writer: ShardWriter) -> str:
    index = writer.publish()
    tokens = sum(shard.tokens for shard in index.shards)
    return (
        f"{writer.directory}: {tokens} tokens of a vocabulary of {index.vocabulary} "
        f"in {len(index.shards)} shards"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools.training.prepare", description=__doc__)
    parser.add_argument(
        "--input", nargs="+", required=True, help="files, directories (all below) or channel:NAME"
    )
    parser.add_argument("--output", type=Path, required=True, help="an empty directory, or none yet")
    # Script mode writes hyperparameters as they are named, with underscores.
    parser.add_argument(
        "--shard-tokens", "--shard_tokens", type=as_count, default=_SHARD_TOKENS, help="tokens of a shard"
    )
    parser.add_argument(
        "--validation-share",
        "--validation_share",
        type=as_share,
        default=0.0,
        help="the last share of all tokens, or documents, becomes a corpus of its own: OUTPUT/train, "
        "OUTPUT/validation",
    )
    parser.add_argument(
        "--tokens", type=TokenDtype, choices=list(TokenDtype), help="input is token ids; raw files of this"
    )
    parser.add_argument("--vocabulary", type=as_count, help="with --tokens: size of their tokenizer's")
    parser.add_argument("--column", help="of .parquet files: the column with the texts")
    parser.add_argument(
        "--ignore", nargs="+", default=[], help="fields of JSON lines, and of messages, that are left out"
    )
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json, or its folder; without: bytes")
    parser.add_argument(
        "--end-token",
        "--end_token",
        help="with --tokenizer: the token that ends a document; without: eos_token of tokenizer_config.json",
    )
    parser.add_argument(
        "--pack",
        type=as_count,
        help="pack whole documents into sequences of so many tokens (sequence_length)",
    )
    return parser


def as_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not {text!r}")
    return int(text)


def as_share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) < 1:
            return value
    raise argparse.ArgumentTypeError(f"must be a share, 0 or more and below 1, not {text!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
