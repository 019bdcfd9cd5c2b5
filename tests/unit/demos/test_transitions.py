"""Steps of one instant are told in the order in which they can have happened."""

from demos.stage.evidence import transitions


def test_what_an_end_has_freed_is_taken_after_it() -> None:
    def job(name: str, *steps: tuple[str, str]) -> dict[str, object]:
        return {"name": name, "history": [{"at": at, "to": to} for at, to in steps]}

    jobs = [
        job("job1", ("05:00", "running"), ("05:07", "running")),
        job("job2", ("05:00", "running"), ("05:07", "completed")),
    ]
    assert [(step["job"], step["to"]) for step in transitions(jobs)] == [
        ("job1", "running"),
        ("job2", "running"),
        ("job2", "completed"),
        ("job1", "running"),
    ]
