"""The fault list: what may go wrong and what has to come of it. A row's tests are named ``test_<id>_...``."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    id: str
    fault: str
    outcome: str
    not_due: str | None = None
    """Why this version need not have a test of it yet."""


_NOT_DUE: dict[str, str] = {}
"""Why a row need not have a test yet, by its id."""

_LIST = """
A1  add-job dies before it writes
  = nothing is stored; the repeated request stores one job
A2  add-job dies after it wrote, before it answers
  = the repeated request gets that same job
A3  schedule dies before the claim
  = nothing has changed
A4  schedule dies between the claim and CreateTrainingJob
  = when the lease has run out the job is pending again, with the same attempt number, and its slot is
    released once
A5  the answer of CreateTrainingJob is lost
  = the training job is adopted; there is one
A6  schedule dies before it records the start
  = reconcile finds the job running
A7  schedule dies between the record and the alarm
  = reconcile asks for the missing alarm
A8  schedule dies between recording a preemption and StopTrainingJob
  = a later pass stops the victim; the slot of the preemptor is counted once
A9  schedule dies after StopTrainingJob
  = the terminal event completes the preemption
A10 the handler of an end dies before or after its transaction
  = delivered again, the end is applied exactly once and the counters are right
A11 the handler of an end dies before the alarm is deleted
  = reconcile records the orphan and schedule deletes it
A12 a preempted job is back in the queue, but nobody rang
  = the next minute's pass starts it
A13 reconcile dies half way
  = what it repaired is valid; the next run finishes

B1  an event comes twice, five times, at once
  = one transition, one release, one notice
B2  Completed comes before InProgress
  = the job stays completed
B3  an event of an earlier attempt comes late
  = ignored
B4  an event comes a day late
  = applied where it still matters, else nothing
B5  an event is lost
  = reconcile finds out within two periods
B6  an event of a job that is not ours
  = ignored quietly: no error, no dead letter
B7  an event without detail or name, or with an unknown status
  = no crash; not an end
B8  a huge event; a failure reason with control characters
  = cut, stored and logged safely
B9  a handler is throttled for hours or fails three times
  = dead letter and alarm; safe to redrive
B10 Stopping, then Completed within the grace time
  = completed, with no further attempt
B11 Failed while being preempted
  = recovery decides, as if nobody had asked it to stop
B12 a spot interruption: Interrupted, Restarting
  = still running, and the slot is kept
B13 two rules or two stacks see one event
  = each stack acts on its own jobs alone

C1  2 to 20 schedulers at once
  = never more used than there is; each job is claimed once
C2  reconcile meets a slow worker
  = nothing is taken back while the worker may live
C3  cancel meets claim
  = stopped and never created, or stopping and then stopped
C4  cancel meets completion
  = what is final stays; the cancel gets a 409 with the state
C5  a new priority meets claim
  = the entry that exists is re-keyed; none is lost
C6  preemption meets completion
  = completed, with no further attempt
C7  preemption meets a user's cancel
  = stopped, with no further attempt
C8  two preemptors choose one victim
  = one wins; the other chooses again or waits
C9  the preemptor is cancelled while the victim stops
  = the victim is queued; the best job starts
C10 somebody stops the training job in the console
  = stopped, with no further attempt
C11 two submissions of one name
  = the same body: the same job; another body: 409
C12 a stale read shows a finished job as waiting
  = the claim fails and the next one is tried
C13 a transaction conflicts with another
  = tried again with jitter; not a lost race
C14 the capacity is lowered below what is used
  = nothing dies; nothing starts until it fits
C15 the policy changes while a job waits
  = checked again at the start; forbidden ones fail

D1  any AWS call is throttled
  = back-off with full jitter; no job is lost or charged
D2  ResourceLimitExceeded
  = pending with back-off; other types start; the owner reads why
D3  no capacity after the start
  = pending again, counted apart and not charged
D4  the name is in use: ours, foreign, just deleted
  = adopted; name-taken; created once more
D5  PassRole is denied
  = failed-to-start, without a retry
D6  CreateTrainingJob refuses the request
  = failed-to-start; the next job starts
D7  CreateTrainingJob times out
  = adopted or created under the same name, never a second one
D8  AWS cannot be reached
  = pending again, tried ever more rarely; its owner reads why; after three a pass gives up and an alarm tells
D9  stopping what is finished or unknown
  = fine; what is unknown is treated as deleted
D10 the training job is deleted outside
  = failed with the reason; the slot is released
D11 a conditional write fails after it succeeded unseen
  = recognised as our own write
D12 the KMS key is disabled
  = 503 to callers; nothing is half written
D13 no more alarms are allowed
  = the job runs and is reported as unguarded; tried again
D14 everything fails
  = no state changes; it recovers by itself
D15 the table is restored to an hour ago
  = live jobs are adopted by their tags first

E1  a body that is empty, no JSON, a list, a string or null; a wrong content type; marked as binary
  = 400 on the body or the header, never 500
E2  NaN, Infinity, 1e999
  = 400 on the field
E3  a key given twice
  = 400 on the field
E4  100,000 levels; an integer of 5,000 digits
  = 400
E5  a body of 400 KB, 1 MB, 6 MB
  = 413; what is stored always fits into an item
E6  an unknown or misspelt field
  = 400 that names it
E7  direction marks, NUL, half characters, emoji in names, tags and hyperparameters
  = 400 on the field, or kept as it is where the text is free
E8  a hyperparameter that is no string
  = 400 on the field
E9  101 hyperparameters; a key over 256, a value over 2500; a bad or long environment entry
  = 400 on the field
E10 deep nesting inside a field
  = 400 on the field
E11 true where a number is meant
  = 400 on the field
E12 compressed or chunked data; data behind the JSON
  = 400

F1  a priority that is missing, negative, huge, a fraction, a word, a boolean, above the ceiling
  = the default; 400; 422 for the ceiling
F2  no tags; tags as a map; a key without value; a key twice; 47 tags; reserved or unknown trainmaster
    tags
  = the defaults; 400 for the rest
F3  a team tag that names none of the caller's teams
  = 403; nothing is stored
F4  names that are absent, empty, too long, or of other characters
  = 400 for all that do not match
F5  later attempts of 63-character names that share a prefix
  = valid, distinct and stable names
F6  the name of a waiting, running or finished job
  = the same job for the same request, else 409
F7  an instance type that is unknown, in the wrong case or not allowed
  = 422 by the policy
F8  counts of 0, -1 and 10^9; a volume of 0
  = 400; 422 never-fits above the capacity
F9  groups of mixed types; groups with a type; six groups
  = counted by group; 400; 400
F10 instance preferences; a training plan; a serverless job; no instances at all
  = every candidate is held; 400; 400; 400
F11 role ARNs of other accounts and partitions, with paths, dots, line ends
  = exact match or refused
F12 images whose registry only begins like an allowed one
  = parsed, not matched as text
F13 S3 URIs with .., https, upper case, spaces
  = normalised, then matched by whole parts; else 400
F14 no subnet, 17 subnets, 6 groups, a foreign VPC's subnets
  = 400; the foreign ones fail to start
F15 a KMS key as ARN, id or alias
  = full ARNs are matched; id or alias is a 422
F16 no run time, 0, above the rule; a spot wait below the run time
  = 400; 422 by the rule; 400
F17 a keep-alive of 21601 seconds
  = 400
F18 a hyperparameter that looks like a secret
  = 400 that does not repeat it
F19 debugger or profiler rules with an instance type
  = 400

G1  unsigned, wrongly signed, expired requests
  = 403 by the gateway; the function is not called
G2  a caller of no team
  = 403; nothing is written
G2b a caller of the account without the right to invoke
  = 403
G3  another VPC endpoint
  = 403 by the resource policy
G4  an event without the caller's ARN
  = 500 and an alarm; nothing is written
G5  the function invoked directly with a forged caller
  = no policy of the template allows it
G6  a job of another team by its name
  = 404
G7  a paging token that is broken or another team's
  = 400; shows nothing of theirs
G8  lists of 0, 1 and 10,000 jobs that move meanwhile
  = stable, complete, nothing twice
G9  a request replayed
  = the same job
G10 a team over its limits
  = 429 with Retry-After
G11 paths with dots, double slashes, very long names
  = 400 or 404; what is no resource never reaches the function
G12 team a beside team a-b
  = no mix-up in keys or patterns

H1  an alarm of a job that is over or being preempted
  = nothing
H2  an alarm message five times, or after its OK
  = one stop; the alarm is read again first
H3  a forged, foreign or broken alarm message
  = refused
H4  metrics that are missing at first
  = no stop before training has begun
H5  one idle host of several
  = what the rule says, both ways
H6  an idle stop, then Stopped
  = stopped with that reason, no further attempt
H7  many attempts
  = the number rises, names stay short, the budget ends it
H8  preemptors preempted in turn
  = no cycle: priority is strict and a minimum run time holds
H9  clocks five minutes apart, going back, changing to summer time
  = leases and order hold
H10 a warm pool in the way of a wider job
  = it yields, always; there are no dummy jobs
H11 the stack is deleted while jobs run
  = table and key stay; jobs run on
H12 an old message meets new code
  = read, or into the dead letters; no crash
"""

_ROW = re.compile(r"^([A-H][0-9]+b?) +(.*?)\n  = (.*?)(?=\n+[A-H][0-9]|\n*\Z)", re.MULTILINE | re.DOTALL)


def _rows() -> tuple[Row, ...]:
    return tuple(
        Row(id=name, fault=_one_line(fault), outcome=_one_line(outcome), not_due=_NOT_DUE.get(name))
        for name, fault, outcome in _ROW.findall(_LIST)
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


ROWS = _rows()
