"""What the tests of the operator share."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    """Kernels divide their work, also in a worker with one thread (../conftest.py)."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
