"""What all tests share: the implementations under test and how long hypothesis searches."""

import os

import pytest
from hypothesis import HealthCheck, settings

import longbird as lb

settings.register_profile(
    "quick",
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", parent=settings.get_profile("quick"), max_examples=500, derandomize=False
)
settings.load_profile("quick")  # pytest --hypothesis-profile=thorough for more


def require(name: str) -> str:
    """Fails, rather than skips, if an implementation is missing."""
    state = lb.implementations()[name]
    if state == "available":
        return name
    if name == "native" and os.environ.get("LONGBIRD_WITHOUT_NATIVE") == "1":
        pytest.skip(f"LONGBIRD_WITHOUT_NATIVE=1, and {state}")
    pytest.fail(f"{name} is missing: {state}. (LONGBIRD_WITHOUT_NATIVE=1 tests without native.)")


@pytest.fixture(scope="session", params=["gather", "native"])
def impl(request: pytest.FixtureRequest) -> str:
    """Each implementation that runs everything on this machine."""
    return require(request.param)


@pytest.fixture(scope="session")
def native() -> str:
    """For tests of what only the native kernels promise."""
    return require("native")


@pytest.fixture(scope="session")
def flex() -> str:
    """For tests of FlexAttention."""
    return require("flex")
