import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from torch import Tensor

from tests.unit.training.data.corpora import spoil, written_documents
from tools.training.documents import ByteTokenizer, Document, DocumentFiles, Packed
from training.data.blocks import DirectoryPlace
from training.data.index import parse_index
from training.data.token_shards import TokenShards
from training.errors import DataError


def _documents(path: Path, *lines: object) -> list[Document]:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return list(DocumentFiles([path], ByteTokenizer()).documents())


def _listed(rows: Tensor | None) -> list[list[bool]]:
    assert rows is not None
    found: list[list[bool]] = rows.tolist()
    return found


def _trained(one: Document) -> bytes:
    return bytes(token for token, trained in zip(one.tokens, one.trained, strict=True) if trained)


def test_of_a_prompt_and_its_response_the_response_and_its_end_are_trained(tmp_path: Path) -> None:
    (one,) = _documents(tmp_path / "a.jsonl", {"prompt": "2+2=", "response": "vier, é"})
    assert bytes(one.tokens) == b"2+2=vier, \xc3\xa9\xff"
    assert _trained(one) == b"vier, \xc3\xa9\xff"


def test_completion_is_another_word_for_response_and_blank_lines_are_none(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "a", "completion": "b"}\n\n{"text": "c"}\n')
    one, other = DocumentFiles([tmp_path / "a.jsonl"], ByteTokenizer()).documents()
    assert (_trained(one), _trained(other)) == (b"b\xff", b"c\xff")


def test_of_messages_what_the_assistant_says_is_trained_turn_by_turn(tmp_path: Path) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "So long"},
    ]
    (one,) = _documents(tmp_path / "a.jsonl", {"messages": messages})
    assert bytes(one.tokens) == (
        b"<|system|>\nBe brief.\n<|user|>\nHi\n<|assistant|>\nHello\xff"
        b"<|user|>\nBye\n<|assistant|>\nSo long\xff"
    )
    assert _trained(one) == b"Hello\xffSo long\xff"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("[1]", "it is list, not an object", id="no object"),
        pytest.param('{"a": 1}', "it has a, not text, prompt and response, or messages", id="other keys"),
        pytest.param('{"prompt": "a"}', "response is missing", id="a prompt alone"),
        pytest.param('{"text": 7}', "text is not a text", id="a number"),
        pytest.param('{"messages": "hi"}', "messages is not a list of objects", id="no list"),
        pytest.param('{"messages": [{"role": "user"}]}', "content is missing", id="an empty message"),
        pytest.param(
            '{"messages": [{"role": "user", "content": "a"}]}', "there is nothing to train", id="no answer"
        ),
        pytest.param("{", "Expecting property name", id="no JSON"),
    ],
)
def test_a_line_that_is_none_of_these_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n' + line + "\n")
    with pytest.raises(DataError) as caught:
        list(DocumentFiles([path], ByteTokenizer()).documents())
    assert str(caught.value).startswith(f"data {path} line 2: ")
    assert problem in str(caught.value)


def _corpus(directory: Path, *, length: int) -> TokenShards:
    index = parse_index((directory / "index.json").read_bytes(), place="test")
    return TokenShards(DirectoryPlace(directory, title="corpus"), index, sequence_length=length)


def test_where_documents_begin_and_what_is_trained_is_read_with_any_sequence(tmp_path: Path) -> None:
    source = random.Random(seed := 7)
    documents = [
        (list(range(size)), "".join(source.choice("01") for _ in range(size)))
        for size in (source.randint(1, 30) for _ in range(40))
    ]
    written_documents(tmp_path, documents)
    tokens = [token for some, _ in documents for token in some]
    flags = [one == "1" for _, some in documents for one in some]
    begins = [place == 0 for some, _ in documents for place in range(len(some))]
    corpus = _corpus(tmp_path, length=13)
    numbers = list(range(corpus.sequences))
    # Shards are of 100 tokens, so seven sequences of 13 and a target fit into each.
    starts = [100 * (number // 7) + 13 * (number % 7) for number in numbers]
    assert corpus.rows(numbers, 14).tolist() == [tokens[one : one + 14] for one in starts], seed
    assert _listed(corpus.trained(numbers, 14)) == [flags[one : one + 14] for one in starts], seed
    assert _listed(corpus.begins(numbers, 14)) == [begins[one : one + 14] for one in starts], seed


def test_a_shard_of_which_all_is_trained_has_no_mask(tmp_path: Path) -> None:
    written_documents(tmp_path, [([1] * 100, "1" * 100), ([2] * 100, "01" * 50)])
    assert {one.name for one in tmp_path.glob("*.trained")} == {"shard-00001.trained"}
    corpus = _corpus(tmp_path, length=10)
    assert corpus.is_masked
    assert _listed(corpus.trained([0, 9], 4)) == [[True] * 4, [False, True, False, True]]


def test_a_damaged_mask_is_refused_when_it_is_read(tmp_path: Path) -> None:
    written_documents(tmp_path, [([1] * 100, "01" * 50)])
    spoil(tmp_path / "shard-00000.trained", 9)
    corpus = _corpus(tmp_path, length=10)
    corpus.trained([0], 11)
    with pytest.raises(DataError, match=r"shard-00000.trained is damaged at byte 8"):
        corpus.trained([6], 11)


def test_masks_count_for_what_a_corpus_is_and_a_program_that_knows_none_refuses_it(tmp_path: Path) -> None:
    one = written_documents(tmp_path / "one", [([1] * 100, "01" * 50)])
    other = written_documents(tmp_path / "other", [([1] * 100, "10" * 50)])
    plain = written_documents(tmp_path / "plain", [([1] * 100, "1" * 100)])
    assert len({one.identity, other.identity, plain.identity}) == 3
    assert [json.loads(index.to_json())["version"] for index in (one, plain)] == [2, 1]


def _of_lengths(lengths: Sequence[int]) -> list[Document]:
    return [
        Document(tokens=[number] * size, trained=b"\1" * size) for number, size in enumerate(lengths, start=1)
    ]


def test_documents_are_packed_whole_the_longest_first_and_the_rest_is_padding() -> None:
    packed = Packed(length=10, pad=0)
    sequences = list(packed.sequences(_of_lengths([3, 7, 6, 4, 5])))
    told = [[one.tokens[0] for one in sequence] for sequence in sequences]
    assert told == [[1, 2], [3, 4], [5, 0]]
    assert [sum(len(one.tokens) for one in sequence) for sequence in sequences] == [10, 10, 10]
    assert sequences[2][1].trained == bytes(5)
    assert packed.told() == "3 sequences of 10 tokens, 16.7 % padding"


def test_a_document_longer_than_a_sequence_is_cut_and_counted() -> None:
    packed = Packed(length=10, pad=0)
    sequences = list(packed.sequences(_of_lengths([25])))
    assert sorted(len(one.tokens) for sequence in sequences for one in sequence) == [5, 5, 10, 10]
    assert packed.told() == "3 sequences of 10 tokens, 16.7 % padding, 1 documents longer than that were cut"


def test_no_document_is_lost_or_twice_whatever_their_lengths() -> None:
    source = random.Random(seed := 3)
    documents = _of_lengths([source.randint(1, 64) for _ in range(9000)])
    sequences = list(Packed(length=64, pad=0).sequences(documents))
    found = sorted(one.tokens[0] for sequence in sequences for one in sequence if one.tokens[0])
    assert found == list(range(1, 9001)), seed
    # Best fit leaves little, of documents of up to a whole sequence too.
    assert len(sequences) * 64 < 1.04 * sum(len(one.tokens) for one in documents), seed


def test_every_packed_sequence_can_be_read_even_the_last_of_a_shard(tmp_path: Path) -> None:
    documents = [([number] * 10, "0111111111") for number in range(1, 8)]
    index = written_documents(tmp_path, documents, shard_tokens=25, packed=10)
    assert [shard.tokens for shard in index.shards] == [
        21,
        21,
        21,
        11,
    ]  # two sequences and the token after them
    corpus = _corpus(tmp_path, length=10)
    assert corpus.sequences == 7
    assert [row[0] for row in corpus.rows(range(7), 10).tolist()] == [1, 2, 3, 4, 5, 6, 7]
    assert _listed(corpus.begins([0, 6], 11)) == [[True] + [False] * 9 + [True]] * 2
