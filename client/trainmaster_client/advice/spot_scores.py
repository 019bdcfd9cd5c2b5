"""EC2's guess whether spot capacity is available now: a hint, and advice does without it where it must."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from trainmaster.core.request.options import ANY_SUBNET, Alternative

_CONFIG = Config(connect_timeout=3, read_timeout=8, retries={"total_max_attempts": 1})
"""Seconds. Off the network the advice is a little late, not minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementScore:
    score: int | None
    """1 to 10."""
    where: str
    """A subnet or a region."""
    unknown: str = ""
    """Reason for a missing score: an error's code."""


class SpotScores:
    """Asks EC2 once for each question, and not again once it has refused.

    Source: Amazon EC2 API, GetSpotPlacementScores. For fewer than three instance types a score is always low,
    so scores are to be compared with each other only.
    """

    def __init__(self, session: boto3.Session) -> None:
        self._session = session
        self._ec2: Any = None
        self._scores: dict[tuple[str, int, bool], dict[str, int]] = {}
        self._zones: dict[str, str] = {}
        self._refusal = ""

    def score(self, shape: Alternative, subnets: Sequence[str]) -> PlacementScore:
        """Score the shape's own subnet, else the best of ``subnets``, else the region as a whole."""
        places = tuple(subnets) if shape.subnet in {None, ANY_SUBNET} else (shape.subnet,)
        best = [(score, place) for place, score in self._in(places, shape).items()]
        if self._refusal:
            return PlacementScore(score=None, where="", unknown=self._refusal)
        if not best:
            return PlacementScore(score=None, where="", unknown="EC2 gave none")
        score, where = max(best)
        return PlacementScore(score=score, where=where)

    def best_subnet(self, shape: Alternative, subnets: Sequence[str]) -> str:
        """Return the subnet with the best score; the first if none is known to be better."""
        scores = self._in(tuple(subnets), shape)
        return max(subnets, key=lambda subnet: scores.get(subnet, 0))

    def _in(self, subnets: tuple[str, ...], shape: Alternative) -> dict[str, int]:
        """Return the score by subnet, or by region if there are no subnets; empty once EC2 refused."""
        try:
            zones = self._zones_of(subnets)
            scores = self._asked(shape, by_zone=bool(subnets))
        except ClientError as error:
            self._refusal = error.response["Error"]["Code"]
            return {}
        except (BotoCoreError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL is no URL
            self._refusal = type(error).__name__
            return {}
        if not subnets:
            return scores
        return {subnet: scores[zone] for subnet, zone in zones.items() if zone in scores}

    def _zones_of(self, subnets: tuple[str, ...]) -> dict[str, str]:
        unknown = [subnet for subnet in subnets if subnet not in self._zones]
        if unknown and not self._refusal:
            described = self._client().describe_subnets(SubnetIds=unknown)["Subnets"]
            self._zones |= {subnet["SubnetId"]: subnet["AvailabilityZoneId"] for subnet in described}
        return {subnet: self._zones[subnet] for subnet in subnets if subnet in self._zones}

    def _asked(self, shape: Alternative, *, by_zone: bool) -> dict[str, int]:
        instance_type = shape.capacity.instance_type.removeprefix("ml.")
        question = (instance_type, shape.count, by_zone)
        if question not in self._scores and not self._refusal:
            client = self._client()
            scores = client.get_spot_placement_scores(
                InstanceTypes=[instance_type],
                TargetCapacity=shape.count,
                SingleAvailabilityZone=by_zone,
                RegionNames=[client.meta.region_name],
            )["SpotPlacementScores"]
            self._scores[question] = {
                score.get("AvailabilityZoneId") or score["Region"]: score["Score"] for score in scores
            }
        return self._scores.get(question, {})

    def _client(self) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        if self._ec2 is None:
            self._ec2 = self._session.client("ec2", config=_CONFIG)
        return self._ec2
