import pytest

from training.interop.exporting import files_of


@pytest.mark.parametrize(
    ("sizes", "files"),
    [
        pytest.param({"a": 4, "b": 6}, [["a", "b"]], id="what fits exactly is one file"),
        pytest.param({"a": 4, "b": 7, "c": 1}, [["a"], ["b", "c"]], id="cut where it would not fit"),
        pytest.param({"a": 12, "b": 1}, [["a"], ["b"]], id="a tensor larger than a file has one to itself"),
    ],
)
def test_tensors_are_divided_over_files_in_their_order(sizes: dict[str, int], files: list[list[str]]) -> None:
    assert files_of(sizes, file_bytes=10) == files
