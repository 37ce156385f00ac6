"""Language models: loading, embedded policies, warm-up, sampling, serving.

`vpo.models.locate.locate` finds a model by name. Nothing here imports torch before it is needed.
"""

from vpo.models.generate import Completion, Sampling, complete
from vpo.models.locate import EMBEDDED, LocatedModel, ResolvedModel, embedded
from vpo.models.policy import Policy, load
from vpo.models.prompt_format import PromptFormat

__all__ = [
    "EMBEDDED",
    "Completion",
    "LocatedModel",
    "Policy",
    "PromptFormat",
    "ResolvedModel",
    "Sampling",
    "complete",
    "embedded",
    "load",
]
