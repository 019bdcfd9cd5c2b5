"""Keys and attributes of the rows of arrays.

| row | pk | sk |
|---|---|---|
| array | ``AR#name`` | ``array`` |
| its request and values (gzip) | ``AR#name`` | ``request`` |
| array with tasks that have not ended | ``OPEN-ARRAYS`` | ``pool#name`` |
| array that has ended | ``AE#team`` | ``time#name`` |
"""

from trainmaster.adapters.dynamodb.layout import Key

HAS_ARRAYS = "has_arrays"
"""Attribute of a pool's counters: it has had an array, so passes look for open ones."""

JOBS = "jobs#"
"""Prefix of the counts of tasks that are jobs, by kind of state."""
WAITING, HELD, RUNNING = f"{JOBS}waiting", f"{JOBS}held", f"{JOBS}running"
COMPLETED, FAILED, STOPPED, NAME_TAKEN = "completed#", "failed#", "stopped#", "taken#"
"""Prefixes of words of bits, by what became of the task."""
RECENT, AT_MOST, ARRAY_HELD = "recent", "at_most", "held"
INSTANCE_SECONDS, CENTS, UNPRICED = "instance_seconds", "cents", "unpriced"
FIRST_INDEX, LAST_INDEX = "first_index", "last_index"
ENTRY_ID, ENDED_AT, HAS_DEPENDENTS = "entry_id", "ended_at", "has_dependents"


def array_key(name: str) -> Key:
    return (f"AR#{name}", "array")


def is_array_key(key: Key) -> bool:
    return key[0].startswith("AR#")


def array_request_key(name: str) -> Key:
    return (f"AR#{name}", "request")


def open_array_key(pool: str, name: str) -> Key:
    return ("OPEN-ARRAYS", f"{pool}#{name}")


def ended_array_key(team: str, at: str, name: str) -> Key:
    return (f"AE#{team}", f"{at}#{name}")
