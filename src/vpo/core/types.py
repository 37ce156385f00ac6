"""Types of arrays."""

from typing import Any, TypeAlias

import numpy as np

# A numpy array or a torch tensor. The two share no base class, and naming torch here would import it.
Array: TypeAlias = Any
ArrayLike: TypeAlias = Any
Namespace: TypeAlias = Any

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
