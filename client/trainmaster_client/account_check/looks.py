"""Looks beside the trials: refusals, reads after a start, rates, the quota, logs, uploads, warm pools."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from trainmaster_client.account_check.answer_verdicts import LEAST_PER_SECOND, is_only_the_quota
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
"""Seconds granted to a job on a warm pool, even if the time for all trials is over."""
_PAUSE_SECONDS = 1.0
_THREADS = 8
MOST_CALLS: Mapping[str, int] = {
    "CreateTrainingJob": 24,
    "DescribeTrainingJob": 60,
    "ListTrainingJobs": 40,
    "StopTrainingJob": 24,
}
"""Calls in one burst; none of them starts or stops a job."""


@dataclass(slots=True, kw_only=True)
class Looks:
    """Writes what each look saw into the records; each raises MissingRightError if IAM does not allow it."""

    trials: Trials
    account: str
    clock: Callable[[], float] = time.monotonic
    postponed: list[Changed] = field(default_factory=list)

    @property
    def records(self) -> dict[str, Any]:
        return self.trials.records

    def probe(self, probes: Iterable[Changed], *, between: Callable[[], None]) -> None:
        """Send requests that AWS ought to refuse; a job that is created anyway is stopped at once."""
        for probe in probes:
            answer = self._probed(probe, f"probe-{probe.fact}")
            if is_only_the_quota(probe.fact, answer) and not self.trials.are_over:
                self.postponed.append(probe)
            between()

    def probe_again(self) -> None:
        """Repeat the probes that failed only on the quota while trials ran: those answers prove nothing."""
        for probe in self.postponed:
            self._probed(probe, f"again-{probe.fact}")

    def _probed(self, probe: Changed, label: str) -> dict[str, Any]:
        call = self._create(changed(self._plain(label), probe.members))
        answer: dict[str, Any] = call.as_json()
        self.records.setdefault("probes", {})[probe.fact] = answer
        return answer

    def read_after_create(self, name: str, arn: str) -> None:
        """Measure how soon the read operations know a job that was just created."""
        reads: dict[str, tuple[dict[str, Any], Callable[[Mapping[str, Any]], bool]]] = {
            "DescribeTrainingJob": ({"TrainingJobName": name}, lambda _: True),
            "ListTags": ({"ResourceArn": arn}, lambda answer: bool(answer["Tags"])),
            "ListTrainingJobs": ({"NameContains": name}, lambda answer: bool(answer["TrainingJobSummaries"])),
        }
        seen: dict[str, float | None] = dict.fromkeys(reads)
        missing = dict.fromkeys(reads, 0.0)
        began = self.clock()
        while None in seen.values() and self.clock() - began < _READS_SECONDS:
            for operation, (params, is_there) in reads.items():
                if seen[operation] is not None:
                    continue
                call = self.trials.calls.patient("sagemaker", operation, **params)
                since = round(self.clock() - began, 2)
                if call.code is None and is_there(call.result):
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
        """Record what Stop and Update answer about a job that has ended without a warm pool."""
        job = self.trials.jobs.get(label, {})
        if "final" not in job:
            return
        name = job["name"]
        self.records["stop_ended"] = self._ask("StopTrainingJob", TrainingJobName=name).as_json()
        update = {"TrainingJobName": name, "ResourceConfig": {"KeepAlivePeriodInSeconds": 60}}
        self.records.setdefault("warm", {})["none"] = self._ask("UpdateTrainingJob", **update).as_json()

    def rates(self, ended: str) -> None:
        """Measure rates by bursts of calls that change nothing.

        AWS may admit more in the first second than the sustained rate.
        """
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
        """Measure how soon after the last trial's end the quota stops counting its instance."""
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
        """Record the keys in S3 that the ended trials with these labels wrote."""
        request = {"Bucket": bucket, "Prefix": f"{folder_of(run)}/"}
        keys = [
            entry["Key"]
            for entry in self.trials.calls.get("s3", "ListObjectsV2", **request).get("Contents", ())
        ]
        self.records["uploads"] = {
            label: [key for key in keys if f"/{label}/" in key or f"-{label}/" in key]
            for label in labels
            if "final" in self.trials.jobs.get(label, {})
        }

    def signs_of_life(self, bucket: str, run: str) -> None:
        """Record when the deaf trial saw SIGTERM and last wrote before SIGKILL, in seconds since 1970."""
        if "final" not in self.trials.jobs.get("deaf", {}):
            return
        signs = {}
        for sign, which in (("term", 0), ("last", -1)):
            key = f"{folder_of(run)}/checkpoints/deaf/{sign}"
            body = self.trials.calls.get("s3", "GetObject", Bucket=bucket, Key=key)["Body"]
            signs[sign] = int(body.read().split()[which])
        self.trials.jobs["deaf"]["signs"] = signs

    def warm_pool(self, *, until: float) -> None:
        """Record what the keep-alive did, whether the next job takes the pool, and how its release ends."""
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
        warm_status = self._described(job["name"]).get("WarmPoolStatus", {})
        warm |= {"reused": warm_status.get("Status"), "reused_by": warm_status.get("ReusedByJob")}
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
        """Return the instances in use, as the refusal of one more than the quota names them, else None."""
        assert self.trials.quota is not None, "the slot is looked at where the quota is known"
        one_too_many = {"ResourceConfig.InstanceCount": self.trials.quota + 1}
        return used_in(self._create(changed(self._plain("wide"), one_too_many)).text)

    def _create(self, request: dict[str, Any]) -> Said:
        call = self._ask("CreateTrainingJob", **request)
        if call.code is None:
            self.trials.stop(request["TrainingJobName"])
        return call

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
        throttled = [answer for answer in answers if answer.is_throttled]
        for answer in answers:
            if missing_action("sagemaker", answer) is not None and operation != "CreateTrainingJob":
                raise RefusedCallError(f"{operation}: {answer.code}: {answer.text}")
        kinds = {(answer.code, answer.status): answer.as_json() for answer in throttled}
        return {
            "calls": len(answers),
            "seconds": round(seconds, 3),
            "codes": dict(Counter(answer.code or "" for answer in answers)),
            "throttled": len(throttled),
            "refusals": list(kinds.values()),
            "admitted_per_second": round((len(answers) - len(throttled)) / max(seconds, 0.001), 2),
        }
