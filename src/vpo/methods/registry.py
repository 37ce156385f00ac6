"""The methods by name, and methods of your own: an instance, or "MODULE:CLASS" where a name is written down."""

from dataclasses import fields
from importlib import import_module
from typing import Any

from vpo.methods.base import Method
from vpo.methods.dr_grpo import DrGrpo
from vpo.methods.gdpo import Gdpo
from vpo.methods.goal_conditioned import GoalConditioned
from vpo.methods.grpo import Grpo
from vpo.methods.max_at_k import MaxAtK
from vpo.methods.maxrl import MaxRl
from vpo.methods.multi_rlvr import MultiRlvr
from vpo.methods.random_weighting import RandomWeighting
from vpo.methods.vpo import Vpo
from vpo.methods.vpo_anchored import VpoAnchored
from vpo.methods.vpo_marginal import VpoMarginal
from vpo.util.errors import InputError, nearest

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Grpo,
        DrGrpo,
        Gdpo,
        MaxRl,
        MaxAtK,
        RandomWeighting,
        GoalConditioned,
        MultiRlvr,
        Vpo,
        VpoAnchored,
        VpoMarginal,
    )
}


def get(name: str | Method, **settings: Any) -> Method:
    """A method, with settings such as ``answers=5`` instead of its defaults.

    Args:
        name: a key of `METHODS`, "MODULE:CLASS" for a method of your own, or a method, which passes as it is.
        settings: fields of the method; none with a method that has its settings already.
    """
    if isinstance(name, Method):
        if settings:
            raise InputError(f"{name.name} has its settings already: use dataclasses.replace to change them")
        return name
    method = _class(name)
    known = [field.name for field in fields(method)]
    for setting in settings:
        if setting not in known:
            raise InputError(f"{name} has no setting {setting!r}: there are {', '.join(known)}")
    return method(**settings)


def reference(method: Method) -> tuple[str, dict[str, Any]]:
    """The name and settings by which `get` makes this method again in another process."""
    kind = type(method)
    if METHODS.get(method.name) is kind:
        return method.name, dict(vars(method))
    if "<locals>" in kind.__qualname__ or kind.__module__ == "__main__":
        raise InputError(f"method {method.name} must be a class of an importable module, not {kind.__qualname__}")
    return f"{kind.__module__}:{kind.__qualname__}", dict(vars(method))


def _class(name: str) -> type[Method]:
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    if not isinstance(name, str) or ":" not in name:
        raise InputError(f"method {name!r} is not known: {nearest(str(name), METHODS)}")
    module, _, path = name.partition(":")
    try:
        value: Any = import_module(module)
        for part in path.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise InputError(f"method {name!r} cannot be imported ({error})") from None
    if not (isinstance(value, type) and issubclass(value, Method)):
        raise InputError(f"method {name!r} must be a subclass of vpo.methods.Method, not {value!r}")
    return value
