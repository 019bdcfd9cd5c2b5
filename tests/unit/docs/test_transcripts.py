"""Transcripts of pages: what is compared, what is left out, and which pages have them run."""

import pytest

from tests.transcripts import Step, is_as, steps

PAGE = """
```bash
trainmaster queue
```

```
a: 2/2 used, next certain end in 29m
...
```

```bash
trainmaster cancel a   # without its output
```

    text

```
no output of it
```
"""


def test_a_block_right_below_a_block_of_shell_is_what_it_prints() -> None:
    assert list(steps(PAGE)) == [
        Step(text="trainmaster queue\n", printed="a: 2/2 used, next certain end in 29m\n...\n"),
        Step(text="trainmaster cancel a   # without its output\n", printed=None),
    ]
    assert [step.reads for step in steps(PAGE)] == [True, False]


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param("vit: running", "vit: running\n", id="the same"),
        pytest.param("ran 4m43s", "ran 12s", id="another duration"),
        pytest.param("until 07:50 at the latest", "until 18:01 at the latest", id="another instant"),
        pytest.param("vit-r1-40b3ee", "vit-r1-0db4b9", id="the hash of another entry"),
        pytest.param("   1 |=vit===x|", "   1 |  /=vit==x|", id="another bar"),
        pytest.param("a\n...\nz", "a\nb\nc\nz", id="lines left out"),
        pytest.param("...\nz", "b\nc\nz", id="lines left out in front"),
        pytest.param("resumed from ...", "resumed from step=120 file=x", id="the rest of a line"),
        pytest.param("capacity: needs ml.m…", "capacity: needs ml.m5…", id="cut elsewhere"),
    ],
)
def test_what_varies_is_no_difference(shown: str, printed: str) -> None:
    assert is_as(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        pytest.param("vit: running", "vit: preempted", id="another state"),
        pytest.param("position 1", "position 2", id="another number"),
        pytest.param("a\n...\nz", "a\nb", id="an end that did not come"),
        pytest.param("a", "a\nb", id="more than is shown"),
        pytest.param("vit by hotfix, lost 0s", "vit by other, lost 0s", id="another job"),
    ],
)
def test_what_differs_is_noticed(shown: str, printed: str) -> None:
    assert not is_as(shown, printed)
