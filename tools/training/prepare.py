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
    """The exit code."""
    asked = _parser().parse_args(arguments)
    remedy = "there is no corpus without its index: make room or give rights, and start again"
    return finished(_prepared(asked), asked.output, remedy=remedy)


def finished(lines: Iterable[str], place: object, *, remedy: str) -> int:
    """Print the lines, whose making is the work; the exit code. A failure is left as that of a job."""
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


def _prepared(asked: argparse.Namespace) -> Iterator[str]:
    """Write the corpora; a line for each."""
    files = files_under([directory_of(one, os.environ, option="input") for one in asked.input])
    if asked.tokens is not None:
        if asked.vocabulary is None:
            raise ConfigError(["--tokens needs --vocabulary: how many tokens their tokenizer has"])
        if asked.tokenizer or asked.pack or asked.column:
            raise ConfigError(["--tokens is for token ids; --tokenizer, --pack and --column are for texts"])
        yield from _streamed(asked, TokenFiles(files, raw_dtype=asked.tokens, vocabulary=asked.vocabulary))
        return
    if asked.column and not any(path.suffix == PARQUET for path in files):
        raise ConfigError([f"--column {asked.column} is of {PARQUET} files, and --input has none"])
    if not (asked.tokenizer or asked.pack or any(path.suffix in {JSON_LINES, PARQUET} for path in files)):
        yield from _streamed(asked, Texts(files))
        return
    tokenizer = FileTokenizer(asked.tokenizer, end=asked.end_token) if asked.tokenizer else ByteTokenizer()
    ignored = {name for some in asked.ignore for name in some.split(",")}
    source = DocumentFiles(files, tokenizer, column=asked.column, ignored=ignored)
    yield from _by_document(asked, source)


def _streamed(asked: argparse.Namespace, source: TokenSource) -> Iterator[str]:
    """The stream into the first corpus until it has its tokens, then into the next."""
    first = _training_share(asked, source.tokens(), "tokens") if asked.validation_share else None
    layout = _layout(asked, source.vocabulary, documents=source.documents)
    rest = iter(_writers(asked, layout))
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


def _by_document(asked: argparse.Namespace, source: DocumentFiles) -> Iterator[str]:
    """Each document whole into one corpus or the other: shares are of their bytes."""
    first = _training_documents(asked, list(source.sizes())) if asked.validation_share else None
    documents = source.documents()
    tokenizer = source.tokenizer
    layout = _layout(asked, tokenizer.vocabulary, documents=True, pad=tokenizer.pad)
    for writer, count in zip(_writers(asked, layout), (first, None), strict=False):
        tally = Tally()
        some = tally.counted(islice(documents, count))
        packed = Packed(length=asked.pack, pad=tokenizer.pad) if asked.pack else None
        for one in chain.from_iterable(packed.sequences(some)) if packed else some:
            writer.write(Part(tokens=one.as_bytes(layout.dtype), begins=True, trained=one.trained))
        yield "; ".join([_told(writer), tally.told(), *([packed.told()] if packed else [])])


def _layout(asked: argparse.Namespace, vocabulary: int, *, documents: bool, pad: int | None = None) -> Layout:
    return Layout(
        dtype=TokenDtype.of(vocabulary),
        vocabulary=vocabulary,
        shard_tokens=asked.shard_tokens,
        documents=documents,
        masked=pad is not None,
        packed=asked.pack,
        pad=pad or 0,
    )


def _writers(asked: argparse.Namespace, layout: Layout) -> list[ShardWriter]:
    shares = ("train", "validation") if asked.validation_share else (".",)
    return [ShardWriter(empty_corpus(asked.output / name), layout) for name in shares]


def _training_share(asked: argparse.Namespace, whole: int, what: str) -> int:
    training: int = round(whole * (1 - asked.validation_share))
    if training in {0, whole}:
        raise ConfigError(
            [f"--validation-share {asked.validation_share} of {whole} {what} leaves one part empty"]
        )
    return training


def _training_documents(asked: argparse.Namespace, sizes: Sequence[int]) -> int:
    share = _training_share(asked, sum(sizes), f"bytes in {len(sizes)} documents")
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
