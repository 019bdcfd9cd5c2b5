"""C8 and O13: which folders of two jobs meet, and what is said of them."""

import pytest
from trainmaster.core.submission.shared_folders import JobFolder, Use, folders_of, warning

from tests.bodies import body

SAME = "job theirs (running) saves to the same folder, s3://b/{}: each would restore the other's checkpoints"
MINE = (
    "job theirs (running) saves to s3://b/{}, which begins with this prefix: its files are restored as yours"
)
OUTPUT = (
    "job theirs (running) writes its output below s3://b/{}, which begins with this prefix: its files are"
    " restored as yours"
)
THEIRS = (
    "job theirs (running) restores from s3://b/{}, where this job writes: its files are restored as theirs"
)


def folder(job: str, use: Use, key: str, bucket: str = "b") -> JobFolder:
    return JobFolder(job=job, use=use, bucket=bucket, key=key)


def saves(job: str, key: str) -> JobFolder:
    return folder(job, Use.SAVES, key)


def writes(job: str, key: str) -> JobFolder:
    return folder(job, Use.WRITES, key)


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        pytest.param(saves("m", "c"), saves("theirs", "c"), SAME.format("c"), id="one folder"),
        pytest.param(saves("m", "c"), saves("theirs", "c/"), SAME.format("c/"), id="a slash at its end"),
        pytest.param(saves("m", "c//"), saves("theirs", "c"), SAME.format("c"), id="two of them"),
        pytest.param(saves("m", ""), saves("theirs", ""), SAME.format(""), id="the whole bucket"),
        pytest.param(saves("m", "c"), saves("theirs", "c/x"), MINE.format("c/x"), id="theirs lies in mine"),
        pytest.param(saves("m", "c/x"), saves("theirs", "c"), THEIRS.format("c"), id="mine lies in theirs"),
        pytest.param(
            saves("m", "a"), saves("theirs", "ab"), MINE.format("ab"), id="S3 knows no folders: a, ab"
        ),
        pytest.param(saves("m", "ab/"), saves("theirs", "a"), THEIRS.format("a"), id="the other way round"),
        pytest.param(saves("m", ""), saves("theirs", "x/y"), MINE.format("x/y"), id="mine is the bucket"),
        pytest.param(saves("m", "o"), writes("theirs", "o/"), OUTPUT.format("o/"), id="their output in mine"),
        pytest.param(
            saves("m", "o/th"), writes("theirs", "o"), OUTPUT.format("o"), id="their output by its name"
        ),
        pytest.param(writes("m", "o"), saves("theirs", "o"), THEIRS.format("o"), id="my output in theirs"),
        pytest.param(
            writes("m", "out/a"), saves("theirs", "out"), THEIRS.format("out"), id="somewhere in theirs"
        ),
    ],
)
def test_O13_folders_that_meet(mine: JobFolder, theirs: JobFolder, words: str) -> None:
    assert mine.meets(theirs)
    assert theirs.meets(mine)
    found = warning(mine, theirs, who="job theirs (running)")
    assert found.message == words
    assert found.field == (
        "CheckpointConfig.S3Uri" if mine.use is Use.SAVES else "OutputDataConfig.S3OutputPath"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(saves("m", "c"), saves("m", "c"), id="the job itself"),
        pytest.param(saves("m", "c"), folder("o", Use.SAVES, "c", "another"), id="another bucket"),
        pytest.param(saves("m", "c/a/"), saves("o", "c/ab/"), id="a slash ends the prefix"),
        pytest.param(saves("m", "c/1"), saves("o", "c/2"), id="beside each other"),
        pytest.param(writes("m", "o"), writes("o", "o"), id="outputs are below the job's name"),
        pytest.param(saves("m", "o/m/ckpt"), writes("o", "o"), id="checkpoints below the own output"),
        pytest.param(saves("m", "checkpoints"), writes("o", ""), id="outputs at the top of the bucket"),
    ],
)
def test_O13_folders_that_do_not_meet(one: JobFolder, other: JobFolder) -> None:
    assert not one.meets(other)
    assert not other.meets(one)


def test_the_folders_of_a_request() -> None:
    whole = body(TrainingJobName="m", CheckpointConfig={"S3Uri": "s3://ckpt/a/"})
    assert folders_of(whole) == (
        folder("m", Use.SAVES, "a/", "ckpt"),
        folder("m", Use.WRITES, "out", "vision-data"),
    )
    assert [one.use for one in folders_of(body())] == [Use.WRITES]
