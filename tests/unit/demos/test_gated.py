"""The scripts of demo-scripts read no more samples than the story wants."""

from pathlib import Path

from demos.scripts.gated import gated_sleep


def test_a_sample_waits_until_the_file_allows_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    gate.write_text("2")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            gate.unlink()

    sleep = gated_sleep(gate, pause=pause)
    sleep(9.0)
    sleep(9.0)
    assert pauses == []
    sleep(9.0)
    assert len(pauses) == 3
    sleep(9.0)
    assert len(pauses) == 3
