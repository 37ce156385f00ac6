"""From a batch of score vectors to advantages: eleven methods, one short file each, and a dict of them.

`advantages` does it in one call. `get` makes a method by name; its declarations (`Method`) are all that engines read.
"""

from vpo.methods.base import Method
from vpo.methods.compute import advantages
from vpo.methods.group import Group, draw_weighting
from vpo.methods.registry import METHODS, get, reference

__all__ = ["METHODS", "Group", "Method", "advantages", "draw_weighting", "get", "reference"]
