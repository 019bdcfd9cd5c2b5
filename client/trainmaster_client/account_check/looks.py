"""Looks beside the trials: refusals, reads after a start, rates, the quota, logs, uploads, warm pools."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trainmaster_client.account_check.answer_verdicts import is_only_the_quota
from trainmaster_client.account_check.assumed_answers import LEAST_PER_SECOND
from trainmaster_client.account_check.service_calls import RefusedCallError, Said, missing_action
from trainmaster_client.account_check.trial_jobs import Trials, used_in
from trainmaster_client.account_check.trial_requests import (
    AGAIN,
    INSTANCE_TYPE,
    NOBODY,
    WARM,
    Changed,
    Trial,
    changed,
    folder_of,
)

_PLAIN = Trial(label="probe", script="true")
_READS_SECONDS = 60.0
_SLOT_SECONDS = 60.0
_RELEASE_SECONDS = 90.0
_WARM_SECONDS = 300.0
_AGAIN_SECONDS = 120.0
"""For a job on a warm pool, however late it is."""
_PAUSE_SECONDS = 1.0
_THREADS = 8
MOST_CALLS: Mapping[str, int] = {
    "CreateTrainingJob": 24,
    "DescribeTrainingJob": 60,
    "ListTrainingJobs": 40,
    "StopTrainingJob": 24,
}
"""In one burst; nothing is started or stopped by them."""


@dataclass(slots=True, kw_only=True)
class Looks:
    """Each notes what it saw in the records, and raises MissingRightError where it may not look."""

    trials: Trials
    account: str
    clock: Callable[[], float] = time.monotonic
    postponed: list[Changed] = field(default_factory=list)

    @property
    def records(self) -> dict[str, Any]:
        return self.trials.records

    def probe(self, probes: Iterable[Changed], *, between: Callable[[], None]) -> None:
        """Ask for what ought to be refused; what is taken anyway is stopped at once."""
        for one in probes:
            answer = self._probed(one, f"probe-{one.fact}")
            if is_only_the_quota(one.fact, answer) and not self.trials.are_over:
                self.postponed.append(one)
            between()

    def probe_again(self) -> None:
        """What the quota refused while the trials ran, which says nothing of the request."""
        for one in self.postponed:
            self._probed(one, f"again-{one.fact}")

    def _probed(self, one: Changed, label: str) -> dict[str, Any]:
        said = self._create(changed(self._plain(label), one.members))
        answer: dict[str, Any] = said.as_json()
        self.records.setdefault("probes", {})[one.fact] = answer
        return answer

    def read_after_create(self, name: str, arn: str) -> None:
        """How soon the others know a job that was just created."""
        asked: dict[str, tuple[dict[str, Any], Callable[[Mapping[str, Any]], bool]]] = {
            "DescribeTrainingJob": ({"TrainingJobName": name}, lambda _: True),
            "ListTags": ({"ResourceArn": arn}, lambda found: bool(found["Tags"])),
            "ListTrainingJobs": ({"NameContains": name}, lambda found: bool(found["TrainingJobSummaries"])),
        }
        seen: dict[str, float | None] = dict.fromkeys(asked)
        missing = dict.fromkeys(asked, 0.0)
        began = self.clock()
        while None in seen.values() and self.clock() - began < _READS_SECONDS:
            for operation, (params, is_there) in asked.items():
                if seen[operation] is not None:
                    continue
                said = self.trials.calls.patient("sagemaker", operation, **params)
                since = round(self.clock() - began, 2)
                if said.code is None and is_there(said.result):
                    seen[operation] = since
                else:
                    missing[operation] = since
            if None in seen.values():
                self.trials.calls.pause(_PAUSE_SECONDS)
        self.trials.records |= {"first_read_seconds": seen, "last_missing_seconds": missing}

    def unknown_and_used_names(self, used: Trial) -> None:
        kept = {"ResourceConfig": {"KeepAlivePeriodInSeconds": 60}}
        self.records["unknown_name"] = {
            operation: self._ask(operation, TrainingJobName=NOBODY, **more).as_json()
            for operation, more in (
                ("DescribeTrainingJob", {}),
                ("StopTrainingJob", {}),
                ("UpdateTrainingJob", kept),
            )
        }
        self.records["used_name"] = self._ask("CreateTrainingJob", **self.trials.request(used)).as_json()

    def ended(self, label: str) -> None:
        """Stop and Update of a job that has ended without a warm pool."""
        job = self.trials.jobs.get(label, {})
        if "final" not in job:
            return
        name = job["name"]
        self.records["stop_ended"] = self._ask("StopTrainingJob", TrainingJobName=name).as_json()
        update = {"TrainingJobName": name, "ResourceConfig": {"KeepAlivePeriodInSeconds": 60}}
        self.records.setdefault("warm", {})["none"] = self._ask("UpdateTrainingJob", **update).as_json()

    def rates(self, ended: str) -> None:
        """Bursts of calls that change nothing; in the first second more may be let through than the rate."""
        bad_role = {"RoleArn": f"arn:aws:iam::{'0' * 12}:role/{NOBODY}"}
        params: dict[str, dict[str, Any]] = {
            "CreateTrainingJob": changed(self._plain("burst"), bad_role),
            "DescribeTrainingJob": {"TrainingJobName": ended},
            "ListTrainingJobs": {"MaxResults": 1},
            "StopTrainingJob": {"TrainingJobName": ended},
        }
        for operation in LEAST_PER_SECOND:
            burst = self._burst(operation, params[operation])
            self.records.setdefault("bursts", {})[operation] = burst

    def slot(self, *, label: str) -> None:
        """With one trial left: what the quota counts before it ends, and when it counts it no more."""
        before = self._used()
        if before is None:
            return
        looks = [{"seconds": 0.0, "used": before}]
        self.records["slot"] = {"label": label, "limit": self.trials.quota, "looks": looks}
        until = self.clock() + _SLOT_SECONDS * 4
        while "final" not in self.trials.jobs[label] and self.clock() < until:
            self.trials.look()
            self.trials.calls.pause(self.trials.pace.look)
        ended = self.clock()
        while self.clock() - ended < _SLOT_SECONDS:
            used = self._used()
            if used is not None:
                looks.append({"seconds": round(self.clock() - ended, 1), "used": used})
                if used < before:
                    return
            self.trials.calls.pause(_PAUSE_SECONDS)

    def uploads(self, bucket: str, run: str, labels: Sequence[str]) -> None:
        """Keys of what ended trials left in S3."""
        asked = {"Bucket": bucket, "Prefix": f"{folder_of(run)}/"}
        keys = [
            one["Key"] for one in self.trials.calls.get("s3", "ListObjectsV2", **asked).get("Contents", ())
        ]
        self.records["uploads"] = {
            label: [key for key in keys if f"/{label}/" in key or f"-{label}/" in key]
            for label in labels
            if "final" in self.trials.jobs.get(label, {})
        }

    def signs_of_life(self, bucket: str, run: str) -> None:
        """Seconds since 1970 that the deaf trial wrote: at SIGTERM, and the last before SIGKILL."""
        if "final" not in self.trials.jobs.get("deaf", {}):
            return
        found = {}
        for sign, which in (("term", 0), ("last", -1)):
            key = f"{folder_of(run)}/checkpoints/deaf/{sign}"
            body = self.trials.calls.get("s3", "GetObject", Bucket=bucket, Key=key)["Body"]
            found[sign] = int(body.read().split()[which])
        self.trials.jobs["deaf"]["signs"] = found

    def warm_pool(self, *, until: float) -> None:
        """What became of the keep-alive, whether the next job takes the pool, whether it ends when told."""
        warm = self.records.setdefault("warm", {})
        self.trials.waiting.append(WARM)
        self.trials.run(until=max(until, self.clock() + _WARM_SECONDS))
        refused = self.records.get("not_started", {}).get(WARM.label)
        job = self.trials.jobs.get(WARM.label)
        if refused is not None or job is None:
            warm |= {} if refused is None else {"create": refused}
            return
        warm["create"] = {"code": None, "text": "", "status": 200}
        if "final" not in job:
            return
        status = self._described(job["name"]).get("WarmPoolStatus", {}).get("Status")
        warm["status"] = status
        if status != "Available":
            return
        self.trials.waiting.append(AGAIN)
        self.trials.look()
        found = self._described(job["name"]).get("WarmPoolStatus", {})
        warm |= {"reused": found.get("Status"), "reused_by": found.get("ReusedByJob")}
        self.trials.run(until=max(until, self.clock() + _AGAIN_SECONDS))
        self._release(AGAIN.label, warm)

    def _release(self, label: str, warm: dict[str, Any]) -> None:
        job = self.trials.jobs.get(label, {})
        if "final" not in job:
            return
        update = {"TrainingJobName": job["name"], "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
        answer, began, status = self._ask("UpdateTrainingJob", **update), self.clock(), None
        while self.clock() - began < _RELEASE_SECONDS:
            status = self._described(job["name"]).get("WarmPoolStatus", {}).get("Status")
            if status != "Available":
                break
            self.trials.calls.pause(_PAUSE_SECONDS)
        seconds = round(self.clock() - began, 1)
        warm["release"] = {"status": status, "seconds": seconds, "answer": answer.as_json()}

    def _described(self, name: str) -> Mapping[str, Any]:
        return self.trials.calls.get("sagemaker", "DescribeTrainingJob", TrainingJobName=name)

    def _used(self) -> int | None:
        """By asking for more than the account may have; the refusal counts."""
        assert self.trials.quota is not None, "the slot is looked at where the quota is known"
        more = {"ResourceConfig.InstanceCount": self.trials.quota + 1}
        return used_in(self._create(changed(self._plain("wide"), more)).text)

    def _create(self, request: dict[str, Any]) -> Said:
        said = self._ask("CreateTrainingJob", **request)
        if said.code is None:
            self.trials.stop(request["TrainingJobName"])
        return said

    def _plain(self, label: str) -> dict[str, Any]:
        trial = Trial(label=label, script=_PLAIN.script)
        return self.trials.means.request(trial, instance_type=INSTANCE_TYPE)

    def _ask(self, operation: str, **params: Any) -> Said:  # noqa: ANN401  as boto3 takes them
        return self.trials.calls.patient("sagemaker", operation, **params)

    def _burst(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        began, window = self.clock(), self.trials.pace.burst
        calls = MOST_CALLS[operation]

        def call(number: int) -> Said:
            self.trials.calls.pause(max(0.0, began + number * window / calls - self.clock()))
            return self.trials.calls.ask("sagemaker", operation, **params)

        with ThreadPoolExecutor(_THREADS) as pool:
            answers = list(pool.map(call, range(calls)))
        seconds = self.clock() - began
        throttled = [one for one in answers if one.is_throttled]
        for one in answers:
            if missing_action("sagemaker", one) is not None and operation != "CreateTrainingJob":
                raise RefusedCallError(f"{operation}: {one.code}: {one.text}")
        kinds = {(one.code, one.status): one.as_json() for one in throttled}
        return {
            "calls": len(answers),
            "seconds": round(seconds, 3),
            "codes": dict(Counter(one.code or "" for one in answers)),
            "throttled": len(throttled),
            "refusals": list(kinds.values()),
            "admitted_per_second": round((len(answers) - len(throttled)) / max(seconds, 0.001), 2),
        }
