import json
from pathlib import Path

import pytest

from tests.unit.training.data.corpora import written, written_documents
from training.config import TrainConfig, read_config
from training.data.corpus import SyntheticLanguage, open_corpus, open_validation
from training.errors import ConfigError, DataError


def _config(data: Path | str, *options: str) -> TrainConfig:
    arguments = ["--data", str(data), "--sequence-length", "10", "--batch-size", "4", *options]
    return read_config(arguments, {})


def _refused(data: Path | str, *options: str) -> str:
    with pytest.raises(DataError) as caught:
        open_corpus(_config(data, *options), env={})
    message = str(caught.value)
    assert len(message) <= 1024
    return message


def _edit(directory: Path, **changes: object) -> None:
    path = directory / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))


def test_synthetic_needs_no_files() -> None:
    assert isinstance(open_corpus(_config("synthetic"), env={}), SyntheticLanguage)


def test_a_directory_and_a_channel_give_the_same_corpus(tmp_path: Path) -> None:
    written(tmp_path, range(100))
    one = open_corpus(_config(tmp_path), env={})
    other = open_corpus(_config("channel:train"), env={"SM_CHANNEL_TRAIN": str(tmp_path)})
    assert one.rows([3], 11).tolist() == other.rows([3], 11).tolist() == [list(range(30, 41))]
    assert one.identity == other.identity
    assert one.sequences == 9


def test_a_channel_that_the_job_does_not_have_is_named_with_those_it_has() -> None:
    with pytest.raises(ConfigError, match="data names channel 'train', but the job has validation"):
        open_corpus(_config("channel:train"), env={"SM_CHANNEL_VALIDATION": "/data"})


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert f"No such file or directory: {tmp_path}/none" in _refused(tmp_path / "none")


def test_a_folder_without_an_index_is_no_corpus(tmp_path: Path) -> None:
    message = _refused(tmp_path)
    assert message.startswith(
        f"data {tmp_path}: there is no index.json; give the whole folder that python -m"
    )
    assert "FullyReplicated" in message


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("{", "Expecting property name", id="not JSON"),
        pytest.param("[]", "list indices", id="not an object"),
        pytest.param('{"version": 3}', "version 3, this program reads 1 and 2", id="of another version"),
        pytest.param('{"version": 1, "dtype": "uint8"}', "'uint8' is not a valid TokenDtype", id="dtype"),
        pytest.param('{"version": 1, "dtype": "uint16"}', "it has no 'vocabulary'", id="a field is missing"),
    ],
)
def test_an_index_that_cannot_be_read(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "index.json").write_text(text)
    message = _refused(tmp_path)
    assert f"index.json cannot be read: {problem}" in message


def test_an_index_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    index = written(tmp_path, range(100))
    _edit(tmp_path, shards=[{**json.loads(index.to_json())["shards"][0], "tokens": 7}])
    assert "shard-00000.bin has 7 tokens of uint16 in 200 bytes" in _refused(tmp_path)
    _edit(tmp_path, shards=[{**json.loads(index.to_json())["shards"][0], "name": "../secret"}])
    assert "shard '../secret' is not in the folder of the index" in _refused(tmp_path)
    _edit(tmp_path, shards=[])
    assert "it lists no shards" in _refused(tmp_path)


def test_missing_shards_are_named_with_what_makes_a_channel_lack_them(tmp_path: Path) -> None:
    written(tmp_path, range(100), shard_tokens=20)
    for number in range(4):
        (tmp_path / f"shard-0000{number}.bin").unlink()
    message = _refused(tmp_path)
    assert (
        "4 of 5 shards are missing: shard-00000.bin, shard-00001.bin, shard-00002.bin and 1 more" in message
    )
    assert "ShardedByS3Key gives each host a part of the files" in message


def test_a_truncated_shard_is_named_with_both_sizes(tmp_path: Path) -> None:
    written(tmp_path, range(100), shard_tokens=50)
    (tmp_path / "shard-00001.bin").write_bytes(b"\0" * 98)
    message = _refused(tmp_path)
    assert "1 of 2 shards do not have their size: shard-00001.bin has 98 bytes of 100" in message


def test_a_larger_vocabulary_than_the_models_is_refused(tmp_path: Path) -> None:
    written(tmp_path, range(100), vocabulary=32_000)
    assert "its vocabulary of 32000 tokens is larger than the 256 of the model (tiny)" in _refused(tmp_path)


def test_a_sequence_must_fit_into_a_shard(tmp_path: Path) -> None:
    written(tmp_path, range(100), shard_tokens=10)
    expected = "no shard holds a sequence of 10 tokens and the one that follows: the longest has 10"
    assert expected in _refused(tmp_path)


def test_a_step_must_not_need_more_sequences_than_there_are(tmp_path: Path) -> None:
    written(tmp_path, range(100))
    expected = "it has 9 sequences of 10 tokens, a step needs batch_size 12"
    assert expected in _refused(tmp_path, "--batch-size", "12")


def test_a_packed_corpus_has_one_sequence_length(tmp_path: Path) -> None:
    written_documents(tmp_path, [([1] * 20, "1" * 20)] * 8, packed=20)
    assert (
        "it is packed into sequences of 20 tokens, sequence_length is 10; set sequence_length 20"
        in _refused(tmp_path)
    )
    assert open_corpus(_config(tmp_path, "--sequence-length", "20"), env={}).sequences == 8


def test_document_masks_need_a_corpus_that_says_where_documents_begin(tmp_path: Path) -> None:
    written(tmp_path, range(100))
    assert "it does not say where documents begin" in _refused(tmp_path, "--document-mask", "true")


def test_evaluation_data_may_be_small_and_its_option_is_named(tmp_path: Path) -> None:
    written(tmp_path, range(25))
    options = ("--eval-every", "5", "--eval-data")
    held_out = open_validation(_config("synthetic", *options, str(tmp_path)), env={})
    assert held_out is not None
    assert held_out.sequences == 2
    with pytest.raises(
        ConfigError, match="eval_data names channel 'validation', but the job has no channels"
    ):
        open_validation(_config("synthetic", *options, "channel:validation"), env={})
    assert open_validation(_config("synthetic"), env={}) is None
