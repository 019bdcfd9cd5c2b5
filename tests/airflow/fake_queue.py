"""A queue that keeps jobs: what was submitted is there, under its name once, in the states a test says."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.integration.client.array_answers import array_document, no_job
from tests.integration.client.fake_api import FakeApi, Received, Scripted, history, problem, view
from tests.integration.client.fake_sagemaker import FakeSageMaker

Document = dict[str, Any]
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/"
_ENDS = {"completed": "Completed", "failed": "Failed", "stopped": "Stopped"}


@dataclass(slots=True)
class FakeQueue:
    sagemaker: FakeSageMaker
    jobs: dict[str, Document] = field(default_factory=dict)
    """Requests by name, in the order of their submission."""
    arrays: dict[str, Document] = field(default_factory=dict)
    """Bodies of arrays by name."""
    courses: dict[str, list[str]] = field(default_factory=dict)
    """What is to be seen of a job, look after look; the last state stays."""
    first_seen: str = "pending"
    """Of jobs without a course."""
    position: int = 3
    """Place in the queue of each job that waits."""
    reasons: dict[str, Document] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    """Names of jobs of another team."""
    failures: list[Scripted] = field(default_factory=list)
    """Answers that come in the place of the next ones."""
    cancelled: list[str] = field(default_factory=list)

    def serve(self, api: FakeApi) -> None:
        api.answer = self._answer  # type: ignore[method-assign]
        self.sagemaker.answers["DescribeTrainingJob"] = self._described

    def _answer(self, received: Received) -> Scripted:
        if self.failures:
            return self.failures.pop(0)
        if received.method == "POST":
            body = json.loads(received.body)
            return self._add_array(body) if received.path == "/add-array" else self._add(body)
        if received.path.startswith("/arrays/") or received.path.removeprefix("/jobs/") in self.arrays:
            return self._of_array(received)
        name = received.path.removeprefix("/jobs/")
        if name in self.hidden:
            return problem(403, "Forbidden", "the job is another team's")
        if name not in self.jobs:
            return problem(404, "Not found", f"no job {name}")
        if received.method == "DELETE":
            self.cancelled.append(name)
            return Scripted(status=202, document=self._view(name, "stopping"))
        return Scripted(document=self._view(name, self._seen(name)) | {"request": self.jobs[name]})

    def _add(self, request: Document) -> Scripted:
        name = request["TrainingJobName"]
        if name in self.hidden or self.jobs.get(name, request) != request:
            return problem(409, "Conflict", "TrainingJobName: is in use")
        self.jobs[name] = request
        document = {"job": self._view(name, self._course(name)[0]), "warnings": []}
        return Scripted(status=201, document=document)

    def _add_array(self, body: Document) -> Scripted:
        name = body["request"]["TrainingJobName"]
        self.arrays[name] = body
        self.jobs[f"{name}-0"] = {**body["request"], "TrainingJobName": f"{name}-0"}
        document = {"array": array_document(name), "warnings": []}
        return Scripted(status=201, document=document)

    def _of_array(self, received: Received) -> Scripted:
        kind, name, *rest = received.path.strip("/").split("/")
        if kind == "jobs":
            return no_job(name)
        if name not in self.arrays:
            return problem(404, "Not found", f"no array {name}")
        if rest == ["tasks"]:
            task = {"index": 0, "name": f"{name}-0", "values": {}, "state": "completed"}
            return Scripted(document={"tasks": [task]})
        if received.method == "DELETE":
            self.cancelled.append(name)
        state = self._seen(name)
        counts = {"completed": 3, "failed": 1} if state == "failed" else {"completed": 4}
        ended = {"tasks": counts, "failed": "2" if state == "failed" else ""}
        return Scripted(document=array_document(name, state=state, **(ended if state in _ENDS else {})))

    def _course(self, name: str) -> list[str]:
        return self.courses.setdefault(name, [self.first_seen])

    def _seen(self, name: str) -> str:
        course = self._course(name)
        return course.pop(0) if len(course) > 1 else course[0]

    def _view(self, name: str, state: str) -> Document:
        has_run = state not in {"pending", "held"}
        attempt = {"attempt": 0, "training_job_name": name, "training_job_arn": ARN + name}
        return view(
            name,
            state=state,
            position=None if has_run else self.position,
            reason=self.reasons.get(name),
            attempts=[attempt] if has_run else [],
            history=history(("pending", 0, "")),
        )

    def _described(self, body: Document) -> Document | tuple[int, Document]:
        """By SageMaker, of what the queue started."""
        name = body["TrainingJobName"]
        if name not in self.jobs or self._course(name)[0] == "pending":
            return 400, {"__type": "ValidationException", "message": "Requested resource not found."}
        status = _ENDS.get(self._course(name)[0], "InProgress")
        return {
            "TrainingJobName": name,
            "TrainingJobArn": ARN + name,
            "TrainingJobStatus": status,
            "SecondaryStatus": status,
            "ModelArtifacts": {"S3ModelArtifacts": f"s3://bucket/out/{name}/output/model.tar.gz"},
            **({"FailureReason": "AlgorithmError: exit code 1"} if status == "Failed" else {}),
        }
