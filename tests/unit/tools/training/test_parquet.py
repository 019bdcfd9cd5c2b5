"""Parquet files as a source of documents: what a line of JSON says, in columns."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tools.training.documents import ByteTokenizer, DocumentFiles
from tools.training.inputs import ParquetRows
from tools.training.prepare import main
from training.errors import ConfigError, DataError

RECORDS: list[dict[str, Any]] = [
    {"text": "All of this, é."},
    {"prompt": "2+2=", "response": "4"},
    {"prompt": "a", "completion": "b"},
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]},
    {"text": ""},
]


def _parquet(path: Path, table: pa.Table | dict[str, Any], **options: Any) -> Path:
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path, **options)
    return path


def _json_lines(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def _prepared(*arguments: str | Path) -> int:
    return main([str(one) for one in arguments])


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


def _refused(path: Path, *, column: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        list(DocumentFiles([path], ByteTokenizer(), column=column).documents())
    return str(caught.value)


SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "prompt": pa.large_string(),
        "response": pa.dictionary(pa.int32(), pa.string()),
        "completion": pa.string(),
        "messages": pa.list_(
            pa.struct({"role": pa.string(), "content": pa.string(), "name": pa.string()}),
        ),
    }
)
ALIKE = [{"text": f"text {number}"} for number in range(9)]
"""A share of their bytes is the same documents in both formats."""


@pytest.mark.parametrize(
    ("records", "options"),
    [(RECORDS, ()), (RECORDS, ("--pack", "16")), (ALIKE, ("--validation-share", "0.5"))],
)
def test_the_same_records_give_the_same_corpus_as_json_lines(
    tmp_path: Path, records: list[dict[str, Any]], options: tuple[str, ...]
) -> None:
    _parquet(tmp_path / "a.parquet", pa.Table.from_pylist(records, schema=SCHEMA), row_group_size=2)
    _json_lines(tmp_path / "a.jsonl", records)
    for kind in ("parquet", "jsonl"):
        assert _prepared("--input", tmp_path / f"a.{kind}", "--output", tmp_path / kind, *options) == 0
    assert _files(tmp_path / "parquet") == _files(tmp_path / "jsonl")
    assert any(name.endswith("index.json") for name in _files(tmp_path / "parquet"))


def test_a_column_of_another_name_is_the_text_and_all_others_are_not_read(tmp_path: Path) -> None:
    columns = {"id": [1, 2], "text": ["no", "no"], "content": ["one", "two"]}
    _parquet(tmp_path / "a.parquet", columns)
    _json_lines(tmp_path / "a.jsonl", [{"text": "one"}, {"text": "two"}])
    assert (
        _prepared("--input", tmp_path / "a.parquet", "--column", "content", "--output", tmp_path / "p") == 0
    )
    assert _prepared("--input", tmp_path / "a.jsonl", "--output", tmp_path / "j") == 0
    assert _files(tmp_path / "p") == _files(tmp_path / "j")


def test_files_follow_one_another_and_one_without_rows_adds_nothing(tmp_path: Path) -> None:
    _parquet(tmp_path / "a.parquet", {"text": ["a"]})
    _parquet(tmp_path / "b.parquet", {"text": pa.array([], pa.string())})
    _parquet(tmp_path / "c.parquet", {"text": ["c"]})
    files = DocumentFiles(sorted(tmp_path.iterdir()), ByteTokenizer())
    assert [bytes(one.tokens) for one in files.documents()] == [b"a\xff", b"c\xff"]
    assert list(files.sizes()) == [1, 1]


def test_rows_come_one_row_group_after_the_other(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", {"text": [f"{n:04d}" for n in range(3000)]}, row_group_size=700)
    rows = iter(ParquetRows(path, column=None))
    assert [next(rows)["text"] for _ in range(3)] == ["0000", "0001", "0002"]
    assert sum(1 for _ in rows) == 2997


def test_input_without_any_row_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _parquet(tmp_path / "a.parquet", {"text": pa.array([], pa.string())})
    assert _prepared("--input", tmp_path / "a.parquet", "--output", tmp_path / "out") == 1
    assert "the input has no tokens for it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        pytest.param({"text": [1]}, "column 'text' is int64, and must be text (string)", id="a number"),
        pytest.param({"text": [b"a"]}, "column 'text' is binary, and must be text (string)", id="bytes"),
        pytest.param({"text": [["a"]]}, "column 'text' is list<element: string>, and must be", id="a list"),
        pytest.param(
            {"text": [{"a": "b"}]}, "column 'text' is struct<a: string>, and must be", id="a struct"
        ),
        pytest.param(
            {"text": ["a"], "response": [1.5]},
            "column 'response' is double, and must be text",
            id="another field",
        ),
        pytest.param(
            {"messages": ["a"]},
            "column 'messages' is string, and must be a list of structs with the texts role and content",
            id="messages that are a text",
        ),
        pytest.param(
            {"messages": [[{"role": "user", "content": 1}]]},
            "column 'messages' is list<element: struct<role: string, content: int64>>, and must be",
            id="messages whose content is a number",
        ),
        pytest.param(
            {"body": ["a"], "title": ["b"]},
            "it has the columns body, title, not text, prompt, response, completion or messages; name the "
            "column with the texts by --column",
            id="none of the columns",
        ),
        pytest.param(
            {"text": [None]}, "column 'text' is null, and must be text", id="a column of the type null"
        ),
    ],
)
def test_a_column_that_is_not_text_is_refused_by_its_name(
    tmp_path: Path, columns: dict[str, Any], told: str
) -> None:
    message = _refused(_parquet(tmp_path / "a.parquet", columns))
    assert message.startswith(f"data {tmp_path}/a.parquet: ")
    assert told in message


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    assert "it has column 'text' 2 times" in _refused(_parquet(tmp_path / "a.parquet", table))


@pytest.mark.parametrize(
    ("records", "told"),
    [
        pytest.param([{"text": "a"}, {"text": None}], "row 2: it has nothing, not text", id="a null"),
        pytest.param([{"prompt": "a", "response": None}], "row 1: response is missing", id="no response"),
        pytest.param(
            [{"messages": [{"role": "assistant", "content": None}, {"role": "assistant", "content": "a"}]}],
            "row 1: content is missing",
            id="a message without content",
        ),
    ],
)
def test_a_null_is_a_field_that_is_left_out(tmp_path: Path, records: list[dict[str, Any]], told: str) -> None:
    schema = pa.schema({"response": pa.string()}) if "response" in records[0] else pa.schema({})
    inferred = pa.Table.from_pylist(records)
    if schema.names:
        inferred = inferred.set_column(1, "response", pa.array([None], pa.string()))
    assert told in _refused(_parquet(tmp_path / "a.parquet", inferred))


def test_a_column_that_is_asked_for_and_not_there_is_named(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", {f"c{n}": ["a"] for n in range(12)})
    told = _refused(path, column="body")
    assert "it has the columns c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more, not body" in told


@pytest.mark.parametrize("content", [b"", b"PAR1 no", b"\0" * 100])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    assert "a.parquet: it cannot be read: " in _refused(tmp_path / "a.parquet")


def test_a_file_that_is_damaged_in_its_middle_is_refused(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "a.parquet", {"text": ["abc" * 100] * 100}, compression="snappy")
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    assert "a.parquet: it cannot be read: " in _refused(path)


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.training.inputs.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"a\.parquet needs pyarrow: pip install pyarrow"):
        DocumentFiles([tmp_path / "a.parquet"], ByteTokenizer())


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("a.jsonl", ("--column", "body"), "--column body is of .parquet files, and --input has none"),
        (
            "a.parquet",
            ("--column", "body", "--tokens", "uint16", "--vocabulary", "9"),
            "--tokens is for token ids; --tokenizer, --pack and --column are for texts",
        ),
    ],
)
def test_a_column_without_parquet_files_is_refused(
    tmp_path: Path, name: str, options: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("{}\n")
    assert _prepared("--input", tmp_path / name, "--output", tmp_path / "out", *options) == 1
    assert told in capsys.readouterr().err
