from dataclasses import replace

import pytest

from tests.unit.training.preemptible.checkpoint.builders import manifest, sight
from training.preemptible.checkpoint.manifest import (
    Finding,
    Refused,
    Sight,
    Torn,
    Whole,
    findings,
    is_work_lost,
)

_TEN = "step-00000010"


def test_nothing_is_found_where_nothing_is() -> None:
    assert findings({"a": {}}) == []


def test_the_newest_comes_first_whatever_the_number_of_its_digits() -> None:
    steps = (20, 100_000_000, 99_999_999)
    view = {f"step-{step:08d}": sight(step) for step in steps}
    found = [one.manifest.step for one in findings({"a": view}) if isinstance(one, Whole)]
    assert found == [100_000_000, 99_999_999, 20]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param([sight()], Whole(name=_TEN, manifest=manifest()), id="all is there: whole"),
        pytest.param(
            [sight(without="__1_0.distcp")],
            Torn(name=_TEN, reason="__1_0.distcp is missing", lacks_files=True),
            id="a file is lost: torn",
        ),
        pytest.param(
            [sight(cut="__1_0.distcp")],
            Torn(name=_TEN, reason="__1_0.distcp has 49 bytes of 50"),
            id="a file is cut: torn",
        ),
        pytest.param(
            [replace(sight(), manifest=None)],
            Torn(name=_TEN, reason="manifest.json is missing", was_published=False),
            id="no manifest: torn",
        ),
        pytest.param(
            [replace(sight(), manifest=b'{"step": 1')],
            Torn(name=_TEN, reason="manifest.json cannot be read"),
            id="half a manifest: torn",
        ),
        pytest.param(
            [replace(sight(), manifest=b'{"step": 10}')],
            Refused(name=_TEN, reason="its manifest.json is not one of this program"),
            id="somebody else's manifest: hands off",
        ),
        pytest.param(
            [sight(without="__1_0.distcp", cut="metadata")],
            Torn(name=_TEN, reason="__1_0.distcp is missing"),
            id="a file is lost, another cut: more than an upload that was interrupted",
        ),
        pytest.param(
            [replace(sight(), manifest=manifest(hashes={"algorithm": "blake3", "metadata": "1"}).text())],
            Refused(
                name=_TEN, reason="its hashes are by blake3, and this program knows multilinear64-sha256"
            ),
            id="hashes of a later program: hands off",
        ),
        pytest.param(
            [sight(4)],
            Refused(name=_TEN, reason="its manifest.json is that of step-00000004"),
            id="renamed: the next save would remove it",
        ),
        pytest.param(
            [sight(), sight()], Whole(name=_TEN, manifest=manifest()), id="two hosts see the union: whole"
        ),
        pytest.param(
            [sight(cut="__0_0.distcp"), sight(without="__0_0.distcp")],
            Torn(name=_TEN, reason="__0_0.distcp has 39 bytes of 40"),
            id="no host has a file whole: torn",
        ),
        pytest.param(
            [sight(), sight(without="__0_0.distcp")],
            Refused(name=_TEN, reason="on b __0_0.distcp is missing"),
            id="one host has what another lacks: refused",
        ),
        pytest.param(
            [sight(without="__1_0.distcp"), sight(without="__0_0.distcp")],
            Refused(name=_TEN, reason="on a __1_0.distcp is missing; on b __0_0.distcp is missing"),
            id="each host has its own part: refused, both named",
        ),
        pytest.param(
            [replace(sight(), manifest=None), sight()],
            Refused(name=_TEN, reason="on a manifest.json is missing"),
            id="the first host lacks the manifest: refused, not started over",
        ),
        pytest.param(
            [sight(), replace(sight(), manifest=manifest(seconds=9.0).text())],
            Refused(name=_TEN, reason="on b manifest.json is another one"),
            id="the hosts have manifests of different saves: refused",
        ),
        pytest.param(
            [sight(), Sight(manifest=None, sizes={})],
            Refused(
                name=_TEN,
                reason="on b manifest.json is missing; on b __0_0.distcp is missing; "
                "on b __1_0.distcp is missing and 1 more",
            ),
            id="a host has nothing: refused, the first few named",
        ),
    ],
)
def test_a_checkpoint_is_judged_by_what_all_hosts_see(seen: list[Sight], expected: Finding) -> None:
    views = {host: {_TEN: one} for host, one in zip("ab", seen, strict=False)}
    assert findings(views) == [expected]


def test_a_host_without_the_folder_lacks_all_of_it() -> None:
    (found,) = findings({"a": {_TEN: sight()}, "b": {}})
    assert isinstance(found, Refused)


_UNFINISHED = Torn(name="step-00000005", reason="manifest.json is missing", was_published=False)
_UPLOADING = Torn(name=_TEN, reason="__1_0.distcp is missing", lacks_files=True)


@pytest.mark.parametrize(
    ("torn", "lost"),
    [
        pytest.param([], False, id="there never was one"),
        pytest.param([_UNFINISHED], False, id="the first save was never finished"),
        pytest.param([_UPLOADING, _UNFINISHED], False, id="the upload of the first was interrupted"),
        pytest.param([_UPLOADING, replace(_UPLOADING, name="step-00000005")], True, id="two lack files"),
        pytest.param([replace(_UPLOADING, lacks_files=False)], True, id="the only one is damaged"),
    ],
)
def test_a_start_from_scratch_loses_work_where_a_checkpoint_was_whole(
    torn: list[Torn], *, lost: bool
) -> None:
    assert is_work_lost(torn) is lost
