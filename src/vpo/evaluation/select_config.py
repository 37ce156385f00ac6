"""The settings of a choice of answers."""

from dataclasses import dataclass

from vpo.util.errors import InputError
from vpo.util.settings import check_settings, setting

WAYS = ("cover", "target", "mbr")
ERRORS = ("scores", "answers")
SIMILARITIES = ("exact", "words", "scores")


@dataclass(frozen=True, kw_only=True)
class SelectConfig:
    """How answers are chosen."""

    by: str = setting(
        "cover",
        "how to choose: cover, the k answers whose best is good under every weighting; target, those that are best "
        "under w*; mbr, those that are most similar to all that were sampled (minimum Bayes risk)",
        choices=WAYS,
    )
    error: float = setting(
        0.0,
        "with cover and target: the probability that a score is wrong, its opposite 1 − r, from 0 to below 0.5; the "
        "choice then hedges against errors",
        least=0,
        metavar="E",
        shown="0, scores are right",
    )
    error_of: str = setting(
        "scores",
        "with --error: which scores are wrong together: scores, each on its own; answers, all scores of an answer",
        choices=ERRORS,
    )
    concentration: float = setting(
        1.0, "α of the Dirichlet distribution of random weightings; 1 is uniform", above=0, metavar="ALPHA"
    )
    similarity: str = setting(
        "exact",
        "with mbr: exact, the same answer, which makes it a majority vote; words, the overlap of words; scores, how "
        "alike two answers are scored",
        choices=SIMILARITIES,
    )
    weigh_votes: bool = setting(
        False, "with mbr: an answer counts by its score under w* instead of once, as in weighted self-consistency"
    )

    @property
    def uses_scores(self) -> bool:
        """Whether the choice depends on scores; a vote on texts does not."""
        return self.by != "mbr" or self.weigh_votes or self.similarity == "scores"

    def __post_init__(self) -> None:
        """Refuse values that are out of bounds, and settings of another way to choose."""
        check_settings(self)
        if not self.error < 0.5:
            raise InputError(f"error must be 0 or more and below 0.5, not {self.error}")
        if self.error and self.by == "mbr":
            raise InputError(f"error must be 0 with --by mbr, not {self.error}: it is for cover and target")
        if not self.error and self.error_of != "scores":
            raise InputError(f"error_of {self.error_of} needs --error")
        if self.by != "mbr" and (self.similarity != "exact" or self.weigh_votes):
            raise InputError("similarity and weigh_votes need --by mbr")
