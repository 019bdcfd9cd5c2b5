from types import SimpleNamespace

import pytest

from tests.unit.training.preemptible.checkpoint.builders import manifest
from training.preemptible.checkpoint.manifest import Manifest, sizes_of


def test_a_manifest_is_read_as_it_was_written() -> None:
    written = manifest(guard={"seed": "1"}, carried={"useful_seconds": 0.1 + 0.2})
    assert Manifest.parsed(written.text()) == written


def test_half_a_manifest_is_an_error_and_so_is_one_of_another_program() -> None:
    text = manifest().text()
    with pytest.raises(ValueError, match=r"Expecting|Unterminated"):
        Manifest.parsed(text[: len(text) // 2])
    with pytest.raises(KeyError):
        Manifest.parsed(b'{"step": 3}')
    with pytest.raises(KeyError):
        Manifest.parsed(b"[]")


def test_the_speed_is_that_of_one_host() -> None:
    assert manifest(files={"a": 500, "b": 1500}, hosts=2, seconds=4.0).bytes_per_second == 250.0


def test_the_size_of_a_file_is_where_its_last_item_ends() -> None:
    places = {
        "a": SimpleNamespace(relative_path="__1_0.distcp", offset=100, length=20),
        "b": SimpleNamespace(relative_path="__0_0.distcp", offset=0, length=70),
        "c": SimpleNamespace(relative_path="__1_0.distcp", offset=0, length=100),
    }
    assert list(sizes_of(places).items()) == [("__0_0.distcp", 70), ("__1_0.distcp", 120)]
