"""Tests of grouping."""

from vpo.util.grouping import group_by


def test_keys_and_items_keep_their_order() -> None:
    groups = group_by(["pear", "fig", "plum", "kiwi", "date", "nut"], len)
    assert list(groups.items()) == [(4, ["pear", "plum", "kiwi", "date"]), (3, ["fig", "nut"])]


def test_no_items_are_no_groups() -> None:
    assert group_by([], len) == {}
