"""The plane of a world behind HTTP, for clients that are not to be told from those of users."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.faults.scenes import trains
from tests.integration.client.fake_api import FakeApi, Received, Scripted, running_fake_api
from tests.integration.messages import proxy_event
from tests.integration.world import World


@dataclass(slots=True)
class ServedPlane:
    world: World
    api: FakeApi
    lost: int = 0
    """Answers of POST /add-job that will not arrive: what was asked for has happened."""
    keys: list[str | None] = field(default_factory=list)
    """Of the submissions, in the order of their arrival."""

    def answer(self, received: Received) -> Scripted:
        query = {name: values[-1] for name, values in received.query.items()}
        event = proxy_event(received.method, received.path, received.body.decode() or None, query=query)
        answer = self.world.call("api", event | {"headers": received.headers})
        if received.path == "/add-job":
            self.keys.append(received.headers.get("idempotency-key"))
            if self.lost:
                self.lost -= 1
                return Scripted(status=504, document={"message": "Endpoint request timed out"})
        headers = {name: values[0] for name, values in answer["multiValueHeaders"].items()}
        return Scripted(status=answer["statusCode"], raw=answer["body"].encode(), headers=headers)

    def end(self, name: str, state: str) -> None:
        """The job runs, and ends as ``state``; stopped by its owner."""
        world = self.world
        world.schedule()
        trains(world, name)
        if state == "stopped":
            assert world.cancel(name) == 202
            world.schedule()
        reason = "AlgorithmError: exit code 3" if state == "failed" else None
        world.sagemaker.end(name, state.capitalize(), reason=reason)
        world.tell(name)
        assert world.states(name) == [state]

    def submitted(self, request: dict[str, Any]) -> None:
        """Through no door, without a key."""
        answer = self.world.api("POST", "/add-job", request)
        assert answer["status"] == 201, json.dumps(answer)


@contextmanager
def served(world: World) -> Iterator[ServedPlane]:
    with running_fake_api() as api:
        plane = ServedPlane(world, api)
        api.answer = plane.answer  # type: ignore[method-assign]
        yield plane
