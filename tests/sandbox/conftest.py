"""Each isolation backend that works here."""

import pytest

from tests.sandbox.harmless import LIMITS
from vpo.sandbox import ISOLATIONS, Sandbox, unavailable_reason
from vpo.sandbox.client import program_form


@pytest.fixture(autouse=True, scope="session")
def server():
    """The server of the judges and its connections, which stay until this process ends."""
    program_form("")


@pytest.fixture(params=["bubblewrap", "landlock", "none"])
def box(request):
    if problem := unavailable_reason(ISOLATIONS[request.param]):
        pytest.skip(f"{request.param} does not work here: {problem}")
    with Sandbox(limits=LIMITS, isolation=request.param, unsafe=True, workers=2) as box:
        yield box
