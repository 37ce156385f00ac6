"""Completions that are read as some answers, whatever they say: random policies write none."""

from vpo.tasks import Reading


def reading_of(text, answers):
    """These answers, in the form that was asked for, as read from a text that belongs to the last of them."""
    return Reading(list(answers), [answer is not None for answer in answers], [(len(text), len(answers) - 1)])
