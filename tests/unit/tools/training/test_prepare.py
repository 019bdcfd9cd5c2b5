import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.markdown import ROOT, blocks, text_of
from tests.unit.tools.training.small_tokenizers import made
from tests.unit.training.data.corpora import written
from tools.training.prepare import main
from training.config import read_config
from training.data.corpus import open_corpus


def _prepared(*arguments: str | Path) -> int:
    return main([str(one) for one in arguments])


def _tokens(directory: Path) -> list[int]:
    """All tokens of a corpus, by the shards alone."""
    index = json.loads((directory / "index.json").read_bytes())
    found: list[int] = []
    for shard in index["shards"]:
        data = (directory / shard["name"]).read_bytes()
        assert len(data) == shard["bytes"]
        assert sha256(data).hexdigest() == shard["sha256"]
        found += np.frombuffer(data, dtype=index["dtype"]).tolist()
    return found


def test_a_text_becomes_its_bytes_and_the_end_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("é")
    (tmp_path / "a.txt").write_text("ab")
    assert _prepared("--input", tmp_path / "b.txt", tmp_path / "a.txt", "--output", tmp_path / "out") == 0
    assert _tokens(tmp_path / "out") == [0xC3, 0xA9, 255, 97, 98, 255]


def test_a_directory_is_read_in_the_order_of_names_without_hidden_files(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    (texts / "sub").mkdir(parents=True)
    (texts / "z.txt").write_text("z")
    (texts / "sub/a.txt").write_text("a")
    (texts / ".hidden").write_text("h")
    assert _prepared("--input", texts, "--output", tmp_path / "out") == 0
    assert _tokens(tmp_path / "out") == [97, 255, 122, 255]


def test_the_same_input_gives_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the same " * 1000)
    for name in ("one", "two"):
        command = ("--input", tmp_path / "a.txt", "--output", tmp_path / name, "--shard-tokens", "4000")
        assert _prepared(*command) == 0
    shards = [f"shard-0000{number}.{kind}" for number in range(3) for kind in ("bin", "documents")]
    names = ["index.json", *shards]
    assert sorted(path.name for path in (tmp_path / "one").iterdir()) == names
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_validation_share_is_the_end_of_the_stream(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0123456")
    (tmp_path / "b.txt").write_text("abcdefghijk")
    command = ("--input", tmp_path / "a.txt", tmp_path / "b.txt", "--output", tmp_path / "out")
    assert _prepared(*command, "--validation-share", "0.25") == 0
    assert bytes(_tokens(tmp_path / "out/train")) == b"0123456\xffabcdefg"
    assert bytes(_tokens(tmp_path / "out/validation")) == b"hijk\xff"


def test_a_share_that_leaves_a_part_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("ab")
    command = ("--input", tmp_path / "a.txt", "--output", tmp_path / "out", "--validation-share", "0.01")
    assert _prepared(*command) == 1
    assert "--validation-share 0.01 of 3 tokens leaves one part empty" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_model_of_preset_tiny_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0123456789" * 10)
    assert _prepared("--input", tmp_path / "a.txt", "--output", tmp_path / "out") == 0
    arguments = ["--data", str(tmp_path / "out"), "--sequence-length", "9", "--batch-size", "2"]
    corpus = open_corpus(read_config(arguments, {}), env={})
    assert bytes(corpus.rows([1], 10)[0].tolist()) == b"9012345678"


@pytest.mark.parametrize("suffix", ["npy", "bin"])
def test_token_ids_of_a_tokenizer_are_taken_as_they_are(tmp_path: Path, suffix: str) -> None:
    tokens = np.array([1, 31_999, 5, 2], dtype=np.uint16)
    path = tmp_path / f"tokens.{suffix}"
    if suffix == "npy":
        np.save(path, tokens.astype(np.int64))
    else:
        tokens.tofile(path)
    command = ("--input", path, "--output", tmp_path / "out", "--tokens", "uint16", "--vocabulary", "32000")
    assert _prepared(*command) == 0
    assert _tokens(tmp_path / "out") == [1, 31_999, 5, 2]


def test_a_large_vocabulary_takes_four_bytes_a_token(tmp_path: Path) -> None:
    np.array([1, 128_255], dtype=np.uint32).tofile(tmp_path / "t.bin")
    command = ("--input", tmp_path / "t.bin", "--output", tmp_path / "out", "--tokens", "uint32")
    assert _prepared(*command, "--vocabulary", "128256") == 0
    assert _tokens(tmp_path / "out") == [1, 128_255]
    assert json.loads((tmp_path / "out/index.json").read_bytes())["dtype"] == "uint32"


def test_token_ids_outside_the_vocabulary_are_named_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.array([1, 2, 256, 300], dtype=np.uint16).tofile(tmp_path / "t.bin")
    command = ("--input", tmp_path / "t.bin", "--output", tmp_path / "out", "--tokens", "uint16")
    assert _prepared(*command, "--vocabulary", "256") == 1
    assert "token 256 at place 2 is outside a vocabulary of 256" in capsys.readouterr().err
    assert not (tmp_path / "out/index.json").exists()


def test_token_ids_need_to_be_told_their_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.bin").write_bytes(b"\0\0")
    assert _prepared("--input", tmp_path / "t.bin", "--output", tmp_path / "out", "--tokens", "uint16") == 1
    assert "--tokens needs --vocabulary" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\x89PNG\r\n", b"ab\xff", b"ab\xc3"], ids=["binary", "byte 255", "cut"])
def test_what_is_not_text_is_refused_by_name(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    assert _prepared("--input", tmp_path / "a.txt", "--output", tmp_path / "out") == 1
    assert f"data {tmp_path}/a.txt: it is not text in UTF-8" in capsys.readouterr().err
    assert not (tmp_path / "out/index.json").exists()


def test_another_corpus_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("new")
    written(tmp_path / "out", range(100))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert _prepared("--input", tmp_path / "a.txt", "--output", tmp_path / "out") == 1
    assert "there is already a corpus in it, and nothing is overwritten" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_files_of_somebody_else_are_never_removed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/thesis.tex").write_text("mine")
    (tmp_path / "a.txt").write_text("new")
    assert _prepared("--input", tmp_path / "a.txt", "--output", tmp_path / "out") == 1
    assert "there is already thesis.tex in it" in capsys.readouterr().err


def test_what_a_run_that_died_left_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("shard-00000.bin", "shard-00007.bin", "shard-00007.trained"):
        (tmp_path / "out" / name).write_text("half")
    (tmp_path / "a.txt").write_text("ab")
    assert _prepared("--input", tmp_path / "a.txt", "--output", tmp_path / "out") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "index.json",
        "shard-00000.bin",
        "shard-00000.documents",
    ]


def test_as_a_script_in_a_job_it_finds_the_rest_of_the_program_and_needs_no_torch(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ab")
    for folder in ("training", "tools"):  # as `trainmaster training-code code --tools` makes it
        shutil.copytree(ROOT / folder, tmp_path / "code" / folder)
    options = ("--input", "channel:raw", "--output", tmp_path / "out", "--shard_tokens", "2")
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            tmp_path / "code/tools/training/prepare.py",
            *options,
        ],  # -S: installs are unseen
        cwd=tmp_path,
        env={"SM_CHANNEL_RAW": str(tmp_path / "a.txt")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{tmp_path}/out: 3 tokens of a vocabulary of 256 in 2 shards\n"


def test_the_commands_of_the_guide_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/a.txt").write_text("ab" * 5000)
    np.arange(5000, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    line = json.dumps({"prompt": "the fox? ", "response": "It jumps."}) + "\n"
    (tmp_path / "questions.jsonl").write_text(20 * line)
    pq.write_table(pa.table({"body": ["a text", "another"]}), tmp_path / "wiki.parquet")
    made(tmp_path / "llama")
    lines = [
        line.split()
        for block in blocks(text_of("docs/training/data.md"), "bash")
        for line in block.text.replace("\\\n", " ").splitlines()
    ]
    prepares = [line[3:] for line in lines if line[:3] == ["python", "-m", "tools.training.prepare"]]
    assert [main(words) for words in prepares] == [0] * 6
    trains = [line[2:] for line in lines if line[:2] == ["python", "training/train.py"]]
    configs = [read_config(words, {}) for words in trains]
    assert [open_corpus(config, env={}).vocabulary for config in configs] == [256]


@pytest.mark.parametrize(
    ("option", "text", "wanted"),
    [
        pytest.param("--shard-tokens", "0", "a whole number, 1 or more", id="no tokens"),
        pytest.param("--vocabulary", "many", "a whole number, 1 or more", id="no number"),
        pytest.param("--validation-share", "1", "a share, 0 or more and below 1", id="all of it"),
        pytest.param("--validation-share", "a tenth", "a share, 0 or more and below 1", id="words"),
    ],
)
def test_an_option_that_is_no_such_number_says_what_it_must_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, text: str, wanted: str
) -> None:
    with pytest.raises(SystemExit):
        _prepared("--input", tmp_path, "--output", tmp_path / "out", option, text)
    assert f"must be {wanted}, not '{text}'" in capsys.readouterr().err
