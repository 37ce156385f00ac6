"""Each isolation backend that works here."""

import pytest

from tests.sandbox.harmless import LIMITS
from vpo.sandbox import ISOLATIONS, Sandbox, unavailable_reason


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def box(request):
    if problem := unavailable_reason(ISOLATIONS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    with Sandbox(limits=LIMITS, isolation=request.param, unsafe=True, workers=2) as box:
        yield box
