"""The layout of the table: the keys of every kind of row.

| row | pk | sk |
|---|---|---|
| job | ``J#name`` | ``job`` |
| its request (gzip) | ``J#name`` | ``request`` |
| its attempts | ``J#name`` | ``a#entry#number`` |
| its transitions | ``J#name`` | ``h#entry#ver`` |
| alias of a training job | ``N#training-job-name`` | ``alias`` |
| queue entry, in the pool's order | ``O#pool`` | ``score#name`` |
| the same in its team's | ``OT#pool#team`` | ``score#name`` |
| the same in its lane | ``Q#pool#team#lane`` | ``score#name`` |
| lane | ``L#pool`` | hash of team and lane |
| parked: backing off, held, waiting for others | ``B#pool`` | ``until#name`` |
| running | ``R#pool`` | ``name`` |
| counters | ``P#pool`` | ``counters`` |
| why its candidates wait | ``P#pool`` | ``told`` |
| what its passes look at | ``P#pool`` | ``front`` |
| rows set aside | ``SET-ASIDE`` | ``key`` |
| a repair | ``REPAIR`` | ``state``, ``id#part#page``, ``id#diff#pool`` |
| team | ``T#pool`` | ``team`` |
| its submissions and changes in a minute | ``S#pool#team`` | ``minute`` |
| reads and calls of all teams in a minute | ``S#-##`` | ``minute`` |
| warm pool | ``W#pool`` | ``training-job-name`` |
| last starts and ends of a warm key, its last job | ``WH#pool`` | ``warm-key`` |
| run times | ``H#pool`` | ``team#lane`` |
| learned lengths of a kind of jobs | ``K#pool`` | ``kind#year#team`` |
| a team's month | ``U#team#month`` | ``total`` |
| a job's usage in it | ``U#team#month`` | ``j#name`` |
| who took what from it | ``U#team#month`` | ``p#time#name`` |
| a day of spot instances of a type | ``I#spot`` | ``type#day`` |
| outbox message | ``E#pool`` | ``id`` |
| the last jobs that named a folder in S3 | ``F#bucket`` | ``/key`` |
| violations of a training job | ``V#month`` | ``time#training-job-name`` |
| the account: paces of calls, where looks go on | ``ACCOUNT`` | ``tokens`` |
| policy | ``POLICY`` | ``current``, ``v#revision`` |
| training plan | ``PLAN`` | its ARN |

Only final jobs have ``ended_at`` beside ``team``, and so are in the index ``by_team``.
"""

from datetime import date

from trainmaster.core.durations import traits
from trainmaster.core.jobs.futile_preemptions import SizeClass
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.candidates import lane, lane_id
from trainmaster.core.planning.past_use import UsePeriod
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob

SCORE_OFFSET = 10**16
SCORE_DIGITS = 17
"""Keeps scores sortable as text: they lie within ±3.2e15 (1,000 points of priority at 100 years each)."""
COUNTERS = "counters"
ORDER_KEY = "order_key"  # attribute of counters: the order that every job of the pool has a score of
GOES_ON_UNTIL = "goes_on_until"  # of counters: until then (epoch ms) others leave the pool to passes in a row
CHANGED_AT = "changed_at"  # of a job: when it was written last, but for its reason to wait
WARNED = "warned"  # attribute of a team's month
BY_TEAM = "by_team"
WAITING = "waiting"  # attribute of a team: how many of its jobs are neither live nor final
CLOSED_BELOW, CLOSED_UNTIL = "closed_below", "closed_until"
"""Attributes of a team while the policy changes: submissions judged by an older version are refused until
this time (epoch milliseconds), in case the change never comes."""
MESSAGE_SCHEMA = 3  # highest known attribute of messages; what has a higher one is left to who knows it
MAX_SORT_KEY = 1000  # characters; DynamoDB takes 1,024 bytes

Key = tuple[str, str]

ACCOUNT_KEY: Key = ("ACCOUNT", "tokens")
POLICY_KEY: Key = ("POLICY", "current")
PLANS = "PLAN"


def job_key(name: str) -> Key:
    return (f"J#{name}", "job")


def request_key(name: str) -> Key:
    return (f"J#{name}", "request")


def attempt_key(name: str, entry_id: str, number: int) -> Key:
    return (f"J#{name}", f"a#{entry_id}#{number:06d}")


def history_key(name: str, entry_id: str, ver: int) -> Key:
    return (f"J#{name}", f"h#{entry_id}#{ver:09d}")


def alias_key(training_job_name: str) -> Key:
    return (f"N#{training_job_name}", "alias")


def counters_key(pool: str) -> Key:
    return (f"P#{pool}", COUNTERS)


def front_key(pool: str) -> Key:
    return (f"P#{pool}", "front")


def told_key(pool: str) -> Key:
    return (f"P#{pool}", "told")


def team_key(pool: str, team: str) -> Key:
    return (team_partition(pool), team)


def minute_key(pool: str, team: str, minute: int) -> Key:
    """Build the key of a minute's row; ``minute`` is counted from 1970."""
    return (f"S#{pool}#{team}", f"{minute:010d}")


def team_partition(pool: str) -> str:
    return f"T#{pool}"


def running_partition(pool: str) -> str:
    return f"R#{pool}"


def parked_partition(pool: str) -> str:
    return f"B#{pool}"


def warm_partition(pool: str) -> str:
    return f"W#{pool}"


def run_times_partition(pool: str) -> str:
    return f"H#{pool}"


def running_key(pool: str, name: str) -> Key:
    return (running_partition(pool), name)


def warm_key(pool: str, training_job_name: str) -> Key:
    return (warm_partition(pool), training_job_name)


def run_times_key(pool: str, team: str, lane_text: str) -> Key:
    return (run_times_partition(pool), f"{team}#{lane_text}")


def learned_key(pool: str, team: str, key: str, era: int) -> Key:
    """Build the key of what is learned; ``key`` is one of ``Traits.keys``."""
    whose, kind = traits.learned_key(team, key)
    return (f"K#{pool}", f"{kind}#{era}#{whose}")


def month_key(team: str, month: str) -> Key:
    return (f"U#{team}#{month}", "total")


def usage_key(team: str, month: str, name: str) -> Key:
    return (f"U#{team}#{month}", f"j#{name}")


def taking_key(team: str, month: str, at: str, victim: str) -> Key:
    return (f"U#{team}#{month}", f"p#{at}#{victim}")


def spot_days_prefix(instance_type: str) -> Key:
    return ("I#spot", f"{instance_type}#")


def spot_day_key(instance_type: str, day: date) -> Key:
    partition, prefix = spot_days_prefix(instance_type)
    return (partition, f"{prefix}{day.isoformat()}")


def message_key(pool: str, message_id: str) -> Key:
    return (f"E#{pool}", message_id)


def set_aside_key(key: str) -> Key:
    return ("SET-ASIDE", key)


def folder_key(bucket: str, key: str) -> Key:
    """Build the same key whether or not a slash ends the folder; the bucket itself is ``/``."""
    return (f"F#{bucket}", f"/{key.rstrip('/')}")


def violation_key(month: str, at: str, training_job_name: str) -> Key:
    return (f"V#{month}", f"{at}#{training_job_name}")


def queue_keys(pool: str, entry: WaitingJob) -> tuple[Key, ...]:
    """List an entry's rows: in the pool's order, in its team's order and in its lane."""
    rank = rank_text(entry.score, entry.name)
    text = lane(entry.shapes, entry.choice)
    return (
        (order_partition(pool), rank),
        (team_order_partition(pool, entry.team), rank),
        (queue_partition(pool, entry.team, text), rank),
    )


def order_partition(pool: str) -> str:
    return f"O#{pool}"


def team_order_partition(pool: str, team: str) -> str:
    return f"OT#{pool}#{team}"


def lanes_partition(pool: str) -> str:
    return f"L#{pool}"


def lane_key(pool: str, team: str, lane_text: str) -> Key:
    return (lanes_partition(pool), lane_id(team, lane_text))


def queue_partition(pool: str, team: str, lane_text: str) -> str:
    return f"Q#{pool}#{team}#{lane_text}"


def parked_key(pool: str, entry: WaitingJob) -> Key:
    return (parked_partition(pool), f"{entry.parked_until_ms:015d}#{entry.name}")


def rank_text(score: int, name: str) -> str:
    return f"{score + SCORE_OFFSET:0{SCORE_DIGITS}d}#{name}"


USED, WARM, LAST_END, ACCOUNT_LIMIT, HOLD, LANE, TEAM, PAST_USE, SERVED, ROLE_STARTS = (
    *("used#", "warm#", "ended#", "limit#", "hold#", "lane#", "team#", "past#", "served#", "role#"),
)
"""Prefixes of the attributes of counters and teams that occur several times.

``lane#`` is of the release before: teams counted the jobs of each lane. Where one is found the lane's
entries are put into the pool's order."""
LANE_TEAM, LANE_TEXT, LANE_HEAD, LANE_PUTS = "team", "lane", "head", "puts"  # of a lane
PARKED = "parked"
"""Attribute of a team: how many of its jobs are held or back off."""
COUNTED = "counted"
"""Attribute of a team: its row exists since the first job, and was not made again by an increment."""


def used(capacity: Capacity) -> str:
    """Name the attribute of counters and teams for instances in use."""
    return f"{USED}{capacity}"


def past_use(period: UsePeriod) -> str:
    """Name the attribute of teams for what ended attempts have held."""
    return f"{PAST_USE}{period}"


def warm(capacity: Capacity) -> str:
    """Name the attribute of counters for instances of warm pools."""
    return f"{WARM}{capacity}"


def last_end(capacity: Capacity) -> str:
    """Name the attribute of counters for when instances of the type last came free."""
    return f"{LAST_END}{capacity}"


def served(kind: SizeClass) -> str:
    """Name the attribute of counters for the last ended attempt that trained at this size of the type."""
    capacity, power = kind
    return f"{SERVED}{capacity}#{power}"


def account_limit(capacity: Capacity) -> str:
    """Name the attribute of counters for what the account refused."""
    return f"{ACCOUNT_LIMIT}{capacity}"


def known_team(team: str) -> str:
    """Name the attribute of counters that says: the pool counts the team, so it must have a row."""
    return f"{TEAM}{team}"


MISSED_WARM_POOLS = "missed_warm_pools"
"""Attribute of counters: starts in a row that counted on a warm pool and landed elsewhere."""


def told(subject: str) -> str:
    """Name the attribute of counters for when operators were first notified of a subject."""
    return f"told#{subject}"


def hold_of(preemptor: str) -> str:
    """Name the attribute of counters for a preemptor's reservation."""
    return f"{HOLD}{preemptor}"


def row_keys(pool: str, entry: WaitingJob | RunningJob | None) -> tuple[Key, ...]:
    """List the rows of queue, parking and pool that a job has, all with the same content; none when final."""
    if entry is None:
        return ()
    if isinstance(entry, RunningJob):
        return (running_key(pool, entry.name),)
    return (parked_key(pool, entry),) if entry.is_parked else queue_keys(pool, entry)
