"""Lambda as AWS plays it: time-outs that kill, retries, a queue that is read in batches, a schedule.

Time-outs, batches and retries are the template's. Source of the behaviour: Lambda Developer Guide,
"Using Lambda with Amazon SQS" and "Asynchronous invocation".
"""

import importlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from trainmaster.bootstrap import Wiring

from local.deployment.template_yaml import read_template
from tests.builders import NOON
from tests.worlds.timeline import KilledError, Life, Timeline

TEMPLATE = Path(__file__).parents[2] / "template.yaml"
FUNCTIONS = ("api", "schedule", "on_training_job_event", "on_idle_alarm", "reconcile")
RETRY_SECONDS = (60.0, 120.0)
"""Between the tries of an asynchronous invocation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What the template says of a function."""

    timeout: float
    retries: int

    @classmethod
    def of(cls, resources: Mapping[str, Any], function: str) -> "Deployed":
        properties = resources[logical_id(function)]["Properties"]
        invoked = properties.get("EventInvokeConfig", {})
        return cls(timeout=float(properties["Timeout"]), retries=invoked.get("MaximumRetryAttempts", 2))


def logical_id(function: str) -> str:
    return "".join(part.capitalize() for part in function.split("_")) + "Function"


def resources_of(template: Path = TEMPLATE) -> dict[str, Any]:
    found: dict[str, Any] = read_template(template.read_text())["Resources"]
    return found


def parameters_of(template: Path = TEMPLATE) -> dict[str, Any]:
    found: dict[str, Any] = read_template(template.read_text())["Parameters"]
    return found


@dataclass(slots=True)
class Record:
    """What became of the invocations of one function."""

    invocations: int = 0
    killed: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    """Seconds of the longest invocation."""
    most_at_once: int = 0
    lost: int = 0
    """Events and messages that went to a dead-letter queue."""
    running: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "invocations": self.invocations,
            "killed": self.killed,
            "errors": dict(self.errors),
            "longest_seconds": round(self.longest, 2),
            "most_at_once": self.most_at_once,
            "dead_letters": self.lost,
        }


class Context:
    """What Lambda hands to a handler."""

    memory_limit_in_mb = 1024

    def __init__(self, function: str, request_id: str, remaining: Callable[[], float]) -> None:
        self.function_name = function
        self.invoked_function_arn = f"arn:aws:lambda:us-east-1:123456789012:function:{function}"
        self.aws_request_id = request_id
        self._remaining = remaining

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int(self._remaining() * 1000))


Over = Callable[[Any, BaseException | None], None]


class Functions:
    def __init__(self, timeline: Timeline, fresh_process: Callable[[], Wiring]) -> None:
        self.timeline = timeline
        resources = resources_of()
        self.deployed = {name: Deployed.of(resources, name) for name in FUNCTIONS}
        self.records = {name: Record() for name in FUNCTIONS}
        self._apps = {name: importlib.import_module(f"functions.{name}.app") for name in FUNCTIONS}
        self._fresh_process = fresh_process
        self._warm: dict[str, list[Wiring]] = {name: [] for name in FUNCTIONS}

    def forget(self) -> None:
        """What was counted so far."""
        for name, record in self.records.items():
            self.records[name] = Record(running=record.running, most_at_once=record.running)

    @property
    def killed(self) -> int:
        return sum(record.killed for record in self.records.values())

    @property
    def lost(self) -> int:
        return sum(record.lost for record in self.records.values())

    @property
    def apps(self) -> list[Any]:
        return list(self._apps.values())

    def wiring(self) -> Wiring:
        """Of the process that asks."""
        life = self.timeline.life
        assert life is not None, "no function runs here"
        wiring: Wiring = life.belongs_to.wiring
        return wiring

    def invoke(self, function: str, event: dict[str, Any], over: Over) -> None:
        """Begins now. ``over`` gets the answer, or the error: KilledError at the time-out."""
        Invocation(self, function, event, over).begin()

    def invoke_later(self, function: str, event: dict[str, Any], tries: int = 0) -> None:
        """Asynchronously: retried after an error, then it is lost."""

        def over(_: Any, error: BaseException | None) -> None:
            if error is None:
                return
            if tries < self.deployed[function].retries:
                again = RETRY_SECONDS[tries]
                self.timeline.after(again, lambda: self.invoke_later(function, event, tries + 1))
            else:
                self.records[function].lost += 1

        self.invoke(function, event, over)

    def process(self, function: str) -> Wiring:
        warm = self._warm[function]
        return warm.pop() if warm else self._fresh_process()

    def keep(self, function: str, wiring: Wiring) -> None:
        self._warm[function].append(wiring)

    def app(self, function: str) -> Any:
        return self._apps[function]

    def handler(self, function: str) -> Callable[[dict[str, Any], Context], Any]:
        handler: Callable[[dict[str, Any], Context], Any] = self._apps[function].handler
        return handler


class Invocation:
    def __init__(self, functions: Functions, function: str, event: dict[str, Any], over: Over) -> None:
        self.function = function
        self._functions = functions
        self._timeline = functions.timeline
        self._event = event
        self._over = over
        self.wiring = functions.process(function)

    def begin(self) -> None:
        timeline, record = self._timeline, self._functions.records[self.function]
        self._since = timeline.now
        ends = timeline.now + self._functions.deployed[self.function].timeout
        record.invocations += 1
        record.running += 1
        record.most_at_once = max(record.most_at_once, record.running)
        context = Context(self.function, str(record.invocations), lambda: ends - timeline.now)
        handler = self._functions.handler(self.function)
        life = Life(ends=ends, belongs_to=self)
        timeline.start(lambda: handler(self._event, context), life=life, over=self._ended)

    def _ended(self, result: Any, error: BaseException | None) -> None:
        record = self._functions.records[self.function]
        record.running -= 1
        record.longest = max(record.longest, self._timeline.now - self._since)
        if isinstance(error, KilledError):
            record.killed += 1
        else:
            self._functions.keep(self.function, self.wiring)
        if isinstance(error, Exception):
            record.errors[type(error).__name__] += 1
        self._over(result, error)


@dataclass(slots=True, eq=False)
class _Message:
    id: str
    body: str
    sent: float
    received: int = 0


class Doorbell:
    """The wake-up queue, and how Lambda reads it for ``schedule``."""

    def __init__(self, functions: Functions, *, delay: float) -> None:
        self._functions = functions
        self._timeline = functions.timeline
        self._delay = delay
        resources = resources_of()
        queue = resources["DoorbellQueue"]["Properties"]
        events = resources["ScheduleFunction"]["Properties"]["Events"].values()
        (trigger,) = [event["Properties"] for event in events if event["Type"] == "SQS"]
        self._visibility = float(queue["VisibilityTimeout"])
        self._most_receives = queue["RedrivePolicy"]["maxReceiveCount"]
        self._batch = trigger["BatchSize"]
        self._window = float(trigger.get("MaximumBatchingWindowInSeconds", 0))
        self._most = parameters_of()["PassesAtOnce"]["Default"]
        self._visible: list[_Message] = []
        self._sent = 0
        self._running = 0
        self._reads = False
        self.rings: list[tuple[float, str, str]] = []
        """(instant, function that rang, pool)."""

    def send(self, bodies: list[str], by: str) -> None:
        for body in bodies:
            self._sent += 1
            self.rings.append((self._timeline.now, by, json.loads(body)["pool"]))
            message = _Message(str(self._sent), body, self._timeline.now)
            self._timeline.after(self._delay, partial(self._shows, message))

    def _shows(self, message: _Message) -> None:
        if message.received >= self._most_receives:
            self._functions.records["schedule"].lost += 1
            return
        self._visible.append(message)
        if not self._reads:
            self._reads = True
            self._timeline.after(self._window, self._read)

    def _read(self) -> None:
        self._reads = False
        while self._visible and self._running < self._most:
            batch, self._visible = self._visible[: self._batch], self._visible[self._batch :]
            self._process(batch)

    def _process(self, batch: list[_Message]) -> None:
        received = self._timeline.now
        self._running += 1
        for message in batch:
            message.received += 1

        def over(answer: Any, error: BaseException | None) -> None:
            self._running -= 1
            everything = {message.id for message in batch}
            items = [] if error is not None else answer["batchItemFailures"]
            failed = everything if error is not None else {item["itemIdentifier"] for item in items}
            for message in batch:
                if message.id in failed:
                    self._timeline.at(received + self._visibility, partial(self._shows, message))
            self._read()

        records = [self._record(message) for message in batch]
        self._functions.invoke("schedule", {"Records": records}, over)

    @staticmethod
    def _record(message: _Message) -> dict[str, Any]:
        sent = NOON + timedelta(seconds=message.sent)
        attributes = {
            "ApproximateReceiveCount": str(message.received),
            "SentTimestamp": str(int(sent.timestamp() * 1000)),
        }
        return {
            "messageId": message.id,
            "body": message.body,
            "attributes": attributes,
            "messageAttributes": {},
            "eventSource": "aws:sqs",
        }
