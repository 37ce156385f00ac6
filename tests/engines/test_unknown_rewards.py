"""Unknown rewards for trainers that have none."""

from vpo.engines.unknown_rewards import with_group_mean


def test_unknown_rewards_get_the_mean_of_the_others():
    assert with_group_mean([1.0, None, 0.0]) == [1.0, 0.5, 0.0]
    assert with_group_mean([0.1, None, 0.1]) == [0.1, 0.1, 0.1]
    assert with_group_mean([None, None]) == [0.0, 0.0]
    assert with_group_mean([]) == []
