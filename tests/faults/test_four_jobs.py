"""The four-job example under the real handlers."""

from tests.faults.scenes import ends
from tests.integration.world import World


def test_the_four_job_example(busy: World) -> None:
    busy.submit("job3", priority=1)
    busy.schedule()
    assert busy.states("job3") == ["pending"]
    busy.submit("job4", priority=3)
    busy.schedule()
    ends(busy, "job1", "Stopped")
    assert busy.states("job1", "job2", "job3", "job4") == ["preempted", "running", "pending", "running"]
    listed = [job["name"] for job in busy.api("GET", "/jobs")["jobs"]]
    assert listed == ["job4", "job2", "job1", "job3"]
    ends(busy, "job2")
    assert busy.states("job1", "job3") == ["running", "pending"]
    ends(busy, "job4")
    assert busy.states("job3") == ["running"]
    resumed = busy.job("job1").live
    assert resumed is not None
    for name in (resumed.training_job_name, "job3"):
        ends(busy, name)
    assert busy.api("GET", "/jobs")["jobs"] == []
    busy.check("job1", "job2", "job3", "job4")


def test_a_resumed_attempt_asks_for_what_was_submitted_under_a_name_of_its_own(preempting: World) -> None:
    ends(preempting, "job1", "Stopped")
    ends(preempting, "job2")
    live = preempting.job("job1").live
    assert live is not None
    assert live.training_job_name.startswith("job1-r1-")
    first, second = (preempting.sagemaker.jobs[name].request for name in ("job1", live.training_job_name))
    assert first["CheckpointConfig"] == second["CheckpointConfig"]
    tags = [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in (first, second)]
    assert [one["trainmaster:attempt"] for one in tags] == ["0", "1"]
    assert tags[0]["trainmaster:job"] == tags[1]["trainmaster:job"]
    view = preempting.api("GET", f"/jobs/{live.training_job_name}")
    assert (view["name"], view["attempt"]) == ("job1", 1), "any attempt's name finds the job"


def test_a_reason_names_who_is_ahead_now_not_who_was(preempting: World) -> None:
    preempting.submit("job3", priority=1)
    preempting.schedule()
    assert "job4 is ahead" in preempting.api("GET", "/jobs/job3")["waiting"]["message"]
    ends(preempting, "job1", "Stopped")
    listed = {job["name"]: job["waiting"] for job in preempting.api("GET", "/jobs")["jobs"]}
    assert "job1 is ahead" in listed["job3"]["message"]
    assert listed["job3"] == preempting.api("GET", "/jobs/job3")["waiting"]
