import signal

from benchmarks.training.proof.jobs import Attempt
from benchmarks.training.proof.kill_schedule import Kill, Schedule
from benchmarks.training.proof.proving import Proof, Run, facts_of, runs_of
from training.config.choices import Precision

KILL = Kill(step=3, signal=signal.SIGKILL)


def schedule(*worlds: int) -> Schedule:
    return Schedule(steps=4, kills=(KILL,) * (len(worlds) - 1), worlds=worlds)


def test_a_schedule_with_a_change_of_ranks_is_run_in_one_world_too() -> None:
    described = [
        (run.id, run.precision, run.schedule.worlds, run.reference) for run in runs_of(schedule(2, 4))
    ]
    assert described == [
        ("fp32-uninterrupted", Precision.FP32, (2,), None),
        ("fp32-interrupted", Precision.FP32, (2, 4), "fp32-uninterrupted"),
        ("fp32-interrupted-one-world", Precision.FP32, (2, 2), "fp32-uninterrupted"),
        ("bf16-uninterrupted", Precision.BF16, (2,), None),
        ("bf16-interrupted-one-world", Precision.BF16, (2, 2), "bf16-uninterrupted"),
    ]


def test_a_schedule_of_one_world_is_run_once_in_each_precision() -> None:
    assert [run.id for run in runs_of(schedule(3, 3))] == [
        "fp32-uninterrupted",
        "fp32-interrupted",
        "bf16-uninterrupted",
        "bf16-interrupted-one-world",
    ]


def test_a_model_of_ones_own_is_trained_in_place_of_the_preset() -> None:
    run, *_ = runs_of(schedule(1, 1))
    own = Proof(schedule=run.schedule, seed=0, checkpoint_every=1, options={"model_config": "m.json"})
    usual = Proof(schedule=run.schedule, seed=0, checkpoint_every=1)
    assert "preset" not in own.hyperparameters(run)
    assert own.hyperparameters(run)["model_config"] == "m.json"
    assert usual.hyperparameters(run)["preset"] == "tiny"


def test_the_facts_of_a_run_say_what_was_trained_in_order_and_how_often() -> None:
    run = Run(id="r", precision=Precision.FP32, schedule=schedule(2, 1), reference="plain")
    attempts = [
        Attempt(
            world=2,
            kill=KILL,
            sent_at=3,
            spoiled=None,
            exit_code=-9,
            losses=((1, 5.5), (2, 5.25), (3, 5.125)),
            said=("starting from scratch",),
            error="",
            seconds=2.04,
        ),
        Attempt(
            world=1,
            kill=None,
            sent_at=None,
            spoiled="step-00000002: flip: bit 1 of byte 2 of __0_0.distcp",
            exit_code=0,
            losses=((3, 5.125), (4, 5.0)),
            said=('event {"kind":"resume","step":2,"look_s":0.5,"read_s":0.25}',),
            error="",
            seconds=1.0,
        ),
    ]
    found = facts_of(run, attempts, {"params": "a", "optimizer": "b"})
    described = found.pop("attempts")
    assert found == {
        "id": "r",
        "precision": "fp32",
        "reference": "plain",
        "spoils": False,
        "worlds": [2, 1],
        "signals": ["3:KILL"],
        "exit_codes": [-9, 0],
        "steps_replayed": 1,
        "final_hashes": {"params": "a", "optimizer": "b"},
        "losses": [
            [1, "0x1.6000000000000p+2"],
            [2, "0x1.5000000000000p+2"],
            [3, "0x1.4800000000000p+2"],
            [3, "0x1.4800000000000p+2"],
            [4, "0x1.4000000000000p+2"],
        ],
    }
    assert described[0] == {
        "world": 2,
        "signal": "3:KILL",
        "sent_at": 3,
        "spoiled": None,
        "exit_code": -9,
        "first_step": 1,
        "last_step": 3,
        "steps_trained": 3,
        "seconds": 2.0,
        "resume_seconds": None,
        "said": ["starting from scratch"],
        "error": "",
    }
    assert (described[1]["first_step"], described[1]["signal"]) == (3, None)
    assert described[1]["resume_seconds"] == {"look": 0.5, "read": 0.25}
    assert described[1]["spoiled"] == "step-00000002: flip: bit 1 of byte 2 of __0_0.distcp"


def test_what_is_asked_for_beside_the_schedule_is_a_run_of_its_own() -> None:
    caught = (Kill(step=2, signal=signal.SIGKILL, in_save=True),) * 2
    runs = runs_of(schedule(2, 4), [Precision.BF16], in_saves=caught, spoils=True)
    assert [(run.id, run.schedule.worlds, run.spoils) for run in runs] == [
        ("bf16-uninterrupted", (2,), False),
        ("bf16-interrupted-one-world", (2, 2), False),
        ("bf16-killed-in-saves", (2, 2, 2), False),
        ("bf16-spoiled", (2, 2), True),
    ]
    assert runs[2].schedule.kills == caught
    assert {run.reference for run in runs[1:]} == {"bf16-uninterrupted"}
