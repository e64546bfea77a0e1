"""What the tests of the operator share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def two_threads(request: pytest.FixtureRequest) -> Iterator[None]:
    """The native kernels divide their work, also in a worker with one thread (../conftest.py).

    The others are torch's operators, which small tensors in several threads only slow down.
    """
    case = getattr(request.node, "callspec", None)
    names = [*request.fixturenames, *(case.params.values() if case else ())]
    before = torch.get_num_threads()
    if any(isinstance(name, str) and name == "native" for name in names):
        torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
