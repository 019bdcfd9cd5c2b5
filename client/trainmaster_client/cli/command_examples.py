"""Examples at the end of each command's help: lines to paste, the plainest first."""

from collections.abc import Mapping
from types import MappingProxyType

EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "queue": (
            "trainmaster queue",
            "trainmaster queue --mine --watch",
            "trainmaster queue --pool p5 -o csv",
        ),
        "top": ("trainmaster top", "trainmaster top 10 --allow-changes"),
        "timeline": ("trainmaster timeline --pool p5 --since 7d", "trainmaster timeline --from 3d --to 1d"),
        "events": ("trainmaster events -f", "trainmaster events --kind 'Job Preempted' --since 7d"),
        "pools": ("trainmaster pools",),
        "dashboard": ("trainmaster dashboard", "trainmaster dashboard --no-browser --allow-changes"),
        "show": ("trainmaster show my-job", "trainmaster show my-job --json"),
        "why": ("trainmaster why my-job",),
        "logs": ("trainmaster logs my-job -f", "trainmaster logs my-job --attempt 1 --tail 100"),
        "history": ("trainmaster history my-job", "trainmaster history --state failed --since 7d"),
        "cancel": (
            "trainmaster cancel my-job",
            "trainmaster cancel sweep --tasks 3-7",
            "trainmaster cancel --mine --state pending",
        ),
        "priority": ("trainmaster priority my-job 9",),
        "hold": ("trainmaster hold my-job",),
        "release": ("trainmaster release my-job",),
        "after": ("trainmaster after my-job prepare afterany:clean-up", "trainmaster after my-job --none"),
        "tree": ("trainmaster tree my-job",),
        "submit": (
            "trainmaster submit job.json --dry-run",
            "trainmaster submit job.json",
            "trainmaster submit --from my-job --name my-job-2",
            "trainmaster submit job.json --after prepare --after afterany:clean-up",
            "trainmaster submit job.json --array 0-63%8 --values table.csv",
        ),
        "sweep": (
            "trainmaster sweep job.json --grid lr=1e-4,3e-4 --grid seed=1-5 --at-most 4",
            "trainmaster sweep job.json --random 40 lr=log:1e-5..1e-2 layers=int:2..12",
        ),
        "arrays": ("trainmaster arrays", "trainmaster arrays sweep", "trainmaster arrays --state failed"),
        "results": ("trainmaster results sweep --by loss", "trainmaster results sweep --csv"),
        "rerun": ("trainmaster rerun sweep", "trainmaster rerun sweep --tasks 3-7 --fresh"),
        "throttle": ("trainmaster throttle sweep 4", "trainmaster throttle sweep none"),
        "run": ("trainmaster run -- python train.py",),
        "plan": ("trainmaster plan --preset llama-1b --instances ml.p5.48xlarge=1",),
        "advise": (
            "trainmaster advise job.json --by cost",
            "trainmaster advise job.json --by work --measured earlier-job",
            "trainmaster advise job.json --by work --bench ml.g5.xlarge=1,bench.json",
            "trainmaster advise --plans --hours 48",
            "trainmaster advise job.json --shape ml.g5.xlarge=4:spot",
        ),
        "manifest": (
            "trainmaster manifest --kind pytorchjob job.json",
            "trainmaster manifest --kind trainjob job.json --claim fsx -o job.yaml",
        ),
        "ssh": ("trainmaster ssh my-job", "trainmaster ssh my-job --host 2"),
        "forward": ("trainmaster forward my-job 6006", "trainmaster forward my-job 8000:6006"),
        "tensorboard": ("trainmaster tensorboard my-job", "trainmaster tensorboard my-job --print"),
        "tune attach": ("trainmaster tune attach my-study --output s3://bucket/prefix",),
        "tune show": ("trainmaster tune show my-study",),
        "tune stop": ("trainmaster tune stop my-study",),
        "usage": (
            "trainmaster usage",
            "trainmaster usage --group-by user --from 30d --csv",
            "trainmaster usage --commit --discount 30%",
        ),
        "violations": ("trainmaster violations --month 2026-11",),
        "preflight": (
            "trainmaster preflight --vpc vpc-0a1b2c3d",
            "trainmaster preflight --parameter ApiReservedConcurrency=50",
        ),
        "doctor": ("trainmaster doctor",),
        "gateway": ("trainmaster gateway", "trainmaster gateway --print-env"),
        "mcp": ("trainmaster mcp",),
        "account-check": ("trainmaster account-check", "trainmaster account-check --gpu ml.g5.xlarge --yes"),
        "training-code": ("trainmaster training-code source",),
        "simulate": (
            "trainmaster simulate --from-account 30d --policy policy.yaml --html a.html",
            "trainmaster simulate --from-sagemaker 90d --policy policy.yaml",
            "trainmaster simulate --from-account 30d --capacity ml.p5.48xlarge=4",
        ),
        "history-export": ("trainmaster history-export --from 30d",),
        "repair": ("trainmaster repair", "trainmaster repair --apply"),
        "policy show": ("trainmaster policy show", "trainmaster policy show --revision 3"),
        "policy validate": ("trainmaster policy validate policy.yaml",),
        "policy diff": ("trainmaster policy diff policy.yaml",),
        "policy apply": ("trainmaster policy apply policy.yaml",),
        "policy rollback": ("trainmaster policy rollback 3",),
        "policy pause": ("trainmaster policy pause",),
        "policy resume": ("trainmaster policy resume",),
    }
)
"""Examples by the command's words."""
_AS_IT_IS = "\b\n"
"""Keeps the help from putting the lines of a paragraph together."""


def epilog(name: str) -> str | None:
    """Return the examples of a command as its help shows them; None if it has none."""
    lines = EXAMPLES.get(name)
    return None if lines is None else "\n".join([f"{_AS_IT_IS}Examples:", *(f"  {line}" for line in lines)])
