"""Verdicts on how jobs behave over time (groups 5 to 10), each derived from the records alone."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from trainmaster.core.diagnosis.exit_codes import exit_code_in

from trainmaster_client.account_check.answer_verdicts import percentile, quoted
from trainmaster_client.account_check.facts import (
    Judge,
    Records,
    Verdict,
    agrees,
    differs,
    held_to,
    recorded,
    skipped,
)
from trainmaster_client.account_check.product_reading import (
    LIMIT,
    NOTHING_THERE,
    REFUSED_FOR_GOOD,
    TAKEN,
    Answer,
    product_reading,
)
from trainmaster_client.account_check.trial_requests import PENDING_SECONDS

Event = Mapping[str, Any]
FINAL = frozenset({"Completed", "Failed", "Stopped"})
GRACE_SECONDS, GRACE_DOUBT_SECONDS = 120, 15
LONGEST_FREE_SECONDS = 60.0
LONGEST_EVENT_SECONDS = 360.0
LONGEST_RELEASE_SECONDS = 60.0
LONGEST_METRIC_SECONDS, LONGEST_ALARM_SECONDS = 300.0, 600.0
FAILS_WITH = 3
"""Exit code of the trial that fails on purpose."""
_EVENT_FIELDS = ("TrainingJobName", "TrainingJobStatus", "SecondaryStatus")


def _job(records: Records, label: str) -> Mapping[str, Any] | None:
    """Return the trial's record if the job has ended, else None."""
    job: Mapping[str, Any] | None = records.get("jobs", {}).get(label)
    return job if job and job.get("final") else None


def ended(label: str, verdict: Callable[[Any], Verdict | None]) -> Judge:
    """Judge by the record of one trial; there is no verdict before it has ended."""

    def judge(records: Records) -> Verdict | None:
        job = _job(records, label)
        return None if job is None else verdict(job)

    return judge


def stopped_in(phase: str, label: str) -> Judge:
    def verdict(job: Mapping[str, Any]) -> Verdict:
        stop = job.get("stop")
        if stop is None or stop["in"] != phase:
            return skipped(f"the job was not caught in {phase}")
        end = (job["final"]["TrainingJobStatus"], job["final"]["SecondaryStatus"])
        took = "" if stop.get("seconds") is None else f", {stop['seconds']:.0f} s after the call"
        if end[0] == "Completed":
            return skipped(f"it was over before it was stopped{took}")
        return held_to(f"{'/'.join(end)}{took}", holds=end == ("Stopped", "Stopped"))

    return ended(label, verdict)


def stop_ended(answer: Answer) -> Verdict:
    reading = product_reading("StopTrainingJob", answer)
    return held_to(quoted("StopTrainingJob", answer), holds=reading in {NOTHING_THERE, TAKEN})


def slot_free(slot: Mapping[str, Any]) -> Verdict | None:
    if not slot["looks"]:
        return None
    before = slot["looks"][0]["used"]
    summary = ", ".join(
        f"{look['used']} used {look['seconds']:.0f} s after Stopped" for look in slot["looks"]
    )
    free = [look["seconds"] for look in slot["looks"][1:] if look["used"] < before]
    return held_to(summary, holds=bool(free) and free[0] <= LONGEST_FREE_SECONDS)


def event_number(records: Records) -> Verdict | None:
    events = records.get("events")
    if events is None:
        return None
    ends = {
        job["name"]: job["final"]["TrainingJobStatus"] for job in records["jobs"].values() if job.get("final")
    }
    if not ends:
        return skipped("no job has ended")
    reported_ends = {event["job"] for event in events if event["status"] in FINAL}
    pairs = [(event["job"], event["secondary"], event["modified"]) for event in events]
    summary = (
        f"{len(events)} events of {len({event['job'] for event in events})} jobs, "
        f"{len(pairs) - len(set(pairs))} doubled, {len(reported_ends & set(ends))} of {len(ends)} ends"
    )
    return held_to(summary, holds=bool(reported_ends & set(ends)))


def event_order(events: Sequence[Event]) -> Verdict:
    turned = 0
    for job in {event["job"] for event in events}:
        modified = [event["modified"] or 0 for event in events if event["job"] == job]
        turned += sum(later < earlier for earlier, later in pairwise(modified))
    return agrees(f"{turned} of {len(events)} events came after a later one of their job")


def event_fields(events: Sequence[Event]) -> Verdict:
    missing = sorted({name for event in events for name in _EVENT_FIELDS if name not in event["fields"]})
    if missing:
        return differs(f"without {', '.join(missing)}")
    always = set.intersection(*(set(event["fields"]) for event in events))
    return agrees(f"always {', '.join(sorted(always))}")


def event_tags(events: Sequence[Event]) -> Verdict:
    return agrees(f"{sum(event['has_tags'] for event in events)} of {len(events)} events have our tag")


def event_delay(events: Sequence[Event]) -> Verdict | None:
    delays = [event["seconds"] for event in events if event["seconds"] is not None]
    if not delays:
        return None
    summary = f"p50 {percentile(delays, 0.5):.1f} s, at most {max(delays):.1f} s"
    return held_to(summary, holds=max(delays) <= LONGEST_EVENT_SECONDS)


def statuses(records: Records) -> Verdict | None:
    known = set(records.get("known_statuses", ()))
    walks = [job["statuses"] for job in records.get("jobs", {}).values() if job.get("final")]
    seen = {status for walk in walks for status in walk}
    if not seen:
        return None
    if unknown := sorted(seen - known):
        return differs(f"unknown: {', '.join(unknown)}")
    return agrees("; ".join(sorted({" > ".join(walk) for walk in walks})))


def billable(records: Records) -> Verdict | None:
    trained, early = _job(records, "ends"), _job(records, "early")
    if trained is None:
        return None
    billed = trained["final"].get("BillableTimeInSeconds")
    holds, summary = bool(billed), f"trained: {billed} s"
    if early is not None and early.get("stop", {}).get("in") == "Starting":
        began, unbilled = early["final"].get("TrainingStartTime"), early["final"].get("BillableTimeInSeconds")
        summary += f"; stopped while Starting: {unbilled or 0} s"
        holds = holds and (began is not None or not unbilled)
    return held_to(summary, holds=holds)


def stop_grace(job: Mapping[str, Any]) -> Verdict | None:
    signs = job.get("signs")
    if not signs:
        return None
    seconds = signs["last"] - signs["term"]
    holds = abs(seconds - GRACE_SECONDS) <= GRACE_DOUBT_SECONDS
    return held_to(f"it was there {seconds} s after SIGTERM", holds=holds)


def exit_code(job: Mapping[str, Any]) -> Verdict:
    reason = job["final"].get("FailureReason")
    return held_to(f"FailureReason {reason!r}", holds=exit_code_in(reason) == FAILS_WITH)


def upload(uploads: Mapping[str, Sequence[str]]) -> Verdict:
    wanted = {"ends": ("model.tar.gz", "output.tar.gz", "/c"), "hears": ("/after-sigterm",)}
    missing = [
        f"{label}: {end}"
        for label, ends in wanted.items()
        if label in uploads
        for end in ends
        if not any(key.endswith(end) for key in uploads[label])
    ]
    counts = "; ".join(f"{label}: {len(keys)} objects" for label, keys in uploads.items())
    return differs(f"missing {', '.join(missing)}") if missing else agrees(counts)


def warm_quota(warm: Mapping[str, Any]) -> Verdict | None:
    if "create" not in warm:
        return None
    summary = f"quota {warm.get('quota', 'unknown')}: {quoted('CreateTrainingJob', warm['create'])}"
    reading = product_reading("CreateTrainingJob", warm["create"])
    if reading == TAKEN:
        if "status" not in warm:
            return skipped(f"{summary}; the job did not end in time")
        summary += f"; WarmPoolStatus {warm['status']}"
    return held_to(summary, holds=reading in {TAKEN, LIMIT, REFUSED_FOR_GOOD})


def warm_match(warm: Mapping[str, Any]) -> Verdict:
    if warm.get("status") != "Available":
        return skipped("needs a warm pool: raise the warm-pool quota of the type")
    if "reused" not in warm:
        return skipped("no second job was started in time")
    return held_to(f"{warm['reused']}, {warm.get('reused_by')}", holds=warm["reused"] in {"Reused", "InUse"})


def warm_release(warm: Mapping[str, Any]) -> Verdict:
    release = warm.get("release")
    if release is None:
        late = "the job on it did not end in time"
        return skipped(late if "reused" in warm else "there was no warm pool")
    seconds = release["seconds"]
    summary = f"{release['status']} after {seconds:.0f} s; {quoted('UpdateTrainingJob', release['answer'])}"
    return held_to(summary, holds=release["status"] == "Terminated" and seconds <= LONGEST_RELEASE_SECONDS)


def warm_none(warm: Mapping[str, Any]) -> Verdict | None:
    answer = warm.get("none")
    if answer is None:
        return None
    reading = product_reading("UpdateTrainingJob", answer)
    return held_to(quoted("UpdateTrainingJob", answer), holds=reading == NOTHING_THERE)


def after_training(key: str, longest: float) -> Judge:
    def verdict(gpu: Mapping[str, Any]) -> Verdict | None:
        if gpu.get("training_at") is None:
            return None
        if gpu.get(key) is None:
            return differs(f"not within {gpu['waited']:.0f} s of Training")
        return held_to(f"{gpu[key]:.0f} s after Training", holds=gpu[key] <= longest)

    return recorded("gpu", verdict)


def pending_end(job: Mapping[str, Any]) -> Verdict:
    final = job["final"]
    if final.get("TrainingStartTime") is not None:
        return skipped("there was capacity: the job trained; try another --gpu TYPE")
    waited = (
        datetime.fromisoformat(job["ended_at"]) - datetime.fromisoformat(job["created_at"])
    ).total_seconds()
    billed = final.get("BillableTimeInSeconds") or 0
    summary = (
        f"{final['TrainingJobStatus']}/{final['SecondaryStatus']} after {waited:.0f} s, billed {billed} s, "
        f"FailureReason {final.get('FailureReason')!r}"
    )
    known = final["TrainingJobStatus"] in {"Stopped", "Failed"}
    return held_to(summary, holds=known and not billed and waited >= PENDING_SECONDS)
