"""Jobs of two teams that differ only in volume, on the twin: they are advised to share, and then do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.plane import (
    INSTANCE_TYPE,
    Document,
    Plane,
    eventually,
    member,
    pool,
    running_plane,
    until_exists,
)

pytestmark = pytest.mark.thorough

SIZES = {"vision": 50, "speech": 200}
ROUNDS = 2


def policy(**overrides: int) -> Document:
    document = pool(2)
    kept = {"keep_alive": "10m", "retain": "10m"}
    document["pools"][0] |= {"warm_pool": kept, "overrides": overrides}
    document["teams"] = [
        {"name": team, "principals": [f"arn:aws:iam::123456789012:role/{team}-*"], "roles": "any"}
        for team in SIZES
    ]
    return document


def runs(plane: Plane, folder: Path, name: str, team: str) -> None:
    """A job of the team starts and trains on the twin's clock, ends, and leaves its instance warm."""
    end = folder / f"end-{name}"
    resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": SIZES[team]}
    request = plane.request(name, until_exists(end), ResourceConfig=resources)
    plane.add(request, keys=member(plane, team))
    for _ in range(5):
        plane.clock(60)
    plane.await_status(name, "InProgress")
    eventually(lambda: plane.described(name)["SecondaryStatus"], lambda status: status == "Training")
    end.touch()
    eventually(lambda: _advanced(plane).job(name)["state"], lambda state: state == "completed")


def _advanced(plane: Plane) -> Plane:
    plane.clock(5)
    return plane


def sharing(plane: Plane) -> list[Document]:
    (shown,) = plane.call("GET", "/pools?sharing=true").document["pools"]
    found: list[Document] = shown["sharing"]
    return found


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Plane, Path]]:
    folder = tmp_path_factory.mktemp("shared")
    with running_plane(folder, "--clock", "manual", policy=policy()) as plane:
        for number in range(ROUNDS):
            for team in SIZES:
                runs(plane, folder, f"{team}-{number}", team)
            for _ in range(13):
                plane.clock(60)
        yield plane, folder


def test_the_teams_are_advised_and_share_after_the_override(advised: tuple[Plane, Path]) -> None:
    plane, folder = advised
    (advice,) = sharing(plane)
    assert advice["differ_in"] == ["volume"]
    sizes = {tuple(kind["teams"]): kind["volume_size_in_gb"] for kind in advice["kinds"]}
    assert sizes == {(team,): size for team, size in SIZES.items()}
    assert (advice["starts"], advice["warm_now"], advice["warm_together"]) == (2 * ROUNDS, 0, ROUNDS)
    assert advice["saved_instance_seconds"] > 0
    assert "overrides.volume_size_in_gb: 200" in advice["todo"]
    assert plane.call("PUT", "/policy", policy(volume_size_in_gb=200)).status == 200
    runs(plane, folder, "vision-after", "vision")
    runs(plane, folder, "speech-after", "speech")
    left = plane.described("vision-after")["WarmPoolStatus"]
    assert (left["Status"], left["ReusedByJob"]) == ("Reused", "speech-after")
