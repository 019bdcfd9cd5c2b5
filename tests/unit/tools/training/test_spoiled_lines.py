"""Lines of JSON that no tokenizer can read: refused by file and line, in words."""

import json
from pathlib import Path

import pytest

from tests.unit.tools.training.small_tokenizers import made
from tools.training import records
from tools.training.prepare import main

GOOD = b'{"text": "a good line"}\n'
FINE = "fine \\ud83d\\ude00, \\u00e9 and \\\\ud83d"


def _prepared(folder: Path, line: bytes, *options: str) -> int:
    (folder / "a.jsonl").write_bytes(GOOD + line + b"\n" + GOOD)
    return main(["--input", str(folder / "a.jsonl"), "--output", str(folder / "out"), *options])


SPOILED = [
    pytest.param(b'{"text": "cut \\ud83d here"}', "text has \\ud83d at character 4", id="half a pair"),
    pytest.param(b'{"text": "\\ude00\\ud83d"}', "text has \\ude00 at character 0", id="the wrong way round"),
    pytest.param(
        b'{"messages": [{"role": "user", "content": "\\ud83d"}]}',
        "messages[0].content has \\ud83d at character 0, which is half of a character",
        id="inside messages",
    ),
    pytest.param(b'{"text": "a", "\\ud83d": 1}', "the name of a field of the line has \\ud83d", id="a name"),
    pytest.param(b'{"text": "a\\u0000b"}', "text has \\u0000 (NUL) at character 1", id="an escaped NUL"),
    pytest.param(b'{"text": "a\x00b"}', "Invalid control character at", id="a NUL"),
    pytest.param(b'{"text": "\xed\xa0\xbd"}', "it is not text in UTF-8", id="half a pair in bytes"),
    pytest.param(
        b'{"text": "\xe9"}', "it is not text in UTF-8 (invalid continuation byte at byte 10)", id="Latin 1"
    ),
    pytest.param(b'\xef\xbb\xbf{"text": "a"}', "it begins with a byte order mark (BOM)", id="a BOM"),
    pytest.param('{"text": "a"}'.encode("utf-16"), "it is not text in UTF-8", id="UTF-16"),
    pytest.param(b'{"text": "a", "text": "b"}', "'text' is there 2 times in one object", id="a name twice"),
    pytest.param(b"[" * 100_000, "its lists and objects are nested too deeply", id="nested"),
    pytest.param(b'{"text": "' + b"a" * 10_000_000 + b'"}', "it is longer than 8 MiB", id="10 MB"),
]


@pytest.mark.parametrize("tokenizer", [True, False])
@pytest.mark.parametrize(("line", "told"), SPOILED)
def test_S11_a_line_that_is_spoiled_is_refused_by_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: bytes, told: str, *, tokenizer: bool
) -> None:
    options = ("--tokenizer", str(made(tmp_path / "tokenizer"))) if tokenizer else ()
    assert _prepared(tmp_path, line, *options) == 1
    said = capsys.readouterr().err
    assert f"data {tmp_path / 'a.jsonl'} line 2: {told}" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out/index.json").exists()


def test_C24_half_an_emoji_is_refused_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _prepared(tmp_path, b'{"text": "cut \\ud83d here"}') == 1
    assert "a.jsonl line 2: text has \\ud83d at character 4" in capsys.readouterr().err


def test_S11_whole_characters_are_read_however_they_are_written(tmp_path: Path) -> None:
    assert _prepared(tmp_path, f'{{"text": "{FINE}"}}'.encode()) == 0
    assert json.loads(f'"{FINE}"').encode() in _bytes(tmp_path / "out")


def _bytes(corpus: Path) -> bytes:
    return (corpus / "shard-00000.bin").read_bytes()[::2]


def test_S11_of_a_line_that_is_too_long_no_more_is_read_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LONGEST_LINE", 40)
    assert _prepared(tmp_path, b'{"text": "' + b"a" * 28 + b'"}') == 1
    (tmp_path / "out/shard-00000.bin").unlink(missing_ok=True)
    assert _prepared(tmp_path, b'{"text": "' + b"a" * 26 + b'"}') == 0


def test_S11_the_share_of_validation_meets_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _prepared(tmp_path, b'{"text": "\\ud83d"}', "--validation-share", "0.5") == 1
    assert "a.jsonl line 2: text has" in capsys.readouterr().err


@pytest.mark.parametrize("tokenizer", [True, False])
def test_S11_a_text_with_nuls_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, tokenizer: bool
) -> None:
    (tmp_path / "a.txt").write_bytes("abc".encode("utf-16-le"))
    options = ["--tokenizer", str(made(tmp_path / "tokenizer"))] if tokenizer else []
    assert main(["--input", str(tmp_path / "a.txt"), "--output", str(tmp_path / "out"), *options]) == 1
    assert "a.txt: it is not text in UTF-8 (it has NULs" in capsys.readouterr().err
