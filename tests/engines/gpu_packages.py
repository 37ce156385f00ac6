"""Packages that need a GPU or a cluster, as names that can be imported and not used.

OpenRLHF imports them at the top of modules whose arithmetic needs none of them. Whatever would call into one raises.
"""

import sys
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

NAMES = ("ray", "vllm", "deepspeed", "torchdata", "bitsandbytes", "optree", "flash_attn")


class Unusable(ModuleType):
    """A module of which every attribute is a class that cannot be instantiated."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": refuse, "__module__": self.__name__})


def refuse(self, *args, **settings):
    raise NotImplementedError(f"{type(self).__module__}.{type(self).__name__} is not installed here")


def remote(kind=None, **settings):
    """`ray.remote`, a decorator with or without arguments: the class itself, in this process."""
    return kind or (lambda kind: kind)


class Finder(MetaPathFinder, Loader):
    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in NAMES else None

    def create_module(self, spec):
        return Unusable(spec.name)

    def exec_module(self, module):
        if module.__name__ == "ray":
            module.remote = remote


@contextmanager
def importable():
    """Make those importable that are not installed; afterwards they, and the modules of OpenRLHF, are forgotten."""
    finder = Finder()
    sys.meta_path.append(finder)  # last, so that an installed package is the real one
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in (*NAMES, "openrlhf")]:
            if name.startswith("openrlhf") or isinstance(sys.modules[name], Unusable):
                del sys.modules[name]
