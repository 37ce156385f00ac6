"""How alike the answers to a problem are: by their texts, or where a pool has none by their scores."""

import numpy as np

from vpo.core.types import Floats
from vpo.evaluation.pools import ProblemPool

SHINGLE = 8  # characters of the pieces that two texts are compared by


def similarity_of(problem: ProblemPool) -> Floats:
    """Of each two answers, (n, n), from 0 to 1, and 1 for an answer with itself.

    Of texts it is the share of pieces of 8 characters that both have (Jaccard). Without texts it is 1 for equal score
    vectors and 0 for others; answers that score 0 in everything fail in ways of their own, and are like no other.
    """
    if problem.answers is not None:
        return _of_texts(problem.answers)
    _, kinds_n = np.unique(problem.scores_nD, axis=0, return_inverse=True)
    kinds_n = kinds_n.reshape(-1)
    some_n = (problem.scores_nD != 0).sum(axis=1) > 0
    equal_nn: Floats = ((kinds_n[:, None] == kinds_n) & some_n[:, None]).astype(np.float64)
    np.fill_diagonal(equal_nn, 1.0)
    return equal_nn


def _of_texts(texts: tuple[str | None, ...]) -> Floats:
    """The Jaccard index of the pieces of each two texts; a missing text is like no other."""
    from scipy.sparse import csr_array  # slow to import

    numbers: dict[str, int] = {}
    pieces = [_pieces(text) for text in texts]
    for each in pieces:
        for piece in each:
            numbers.setdefault(piece, len(numbers))
    sizes_n = np.asarray([len(each) for each in pieces])
    columns = [numbers[piece] for each in pieces for piece in each]
    starts = np.concatenate([[0], np.cumsum(sizes_n)])
    incidence = csr_array((np.ones(len(columns)), columns, starts), shape=(len(texts), max(1, len(numbers))))
    shared_nn = (incidence @ incidence.T).toarray()
    union_nn = sizes_n[:, None] + sizes_n - shared_nn
    similar_nn: Floats = shared_nn / np.maximum(union_nn, 1)
    np.fill_diagonal(similar_nn, 1.0)
    return similar_nn


def _pieces(text: str | None) -> list[str]:
    """The different pieces of a text, in order; a shorter text is one piece."""
    if text is None:
        return []
    plain = " ".join(text.split())
    return list(dict.fromkeys(plain[start : start + SHINGLE] for start in range(max(1, len(plain) - SHINGLE + 1))))
