from training.data import seed_of


def test_a_seed_is_the_same_in_every_process_and_release() -> None:
    assert seed_of(1, "weight", "norm.weight") == 5125907597044244244


def test_other_names_and_numbers_give_other_seeds() -> None:
    seeds = {seed_of(seed, "sequence", number) for seed in range(10) for number in range(100)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**63 for seed in seeds)
