"""What all tests share: implementations under test, threads, how long hypothesis searches."""

import gc
import os
import sys
import zlib
from collections.abc import Iterator

# With a process for each core (pytest -n), one thread in each: threads that share a core wait for
# each other. This is said before torch is imported, and to the processes that tests start. Tests
# of what threads do set the number that they need; those then sleep, rather than spin, while idle.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "OMP_WAIT_POLICY": "passive",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }

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

FAST_CASES = 2
"""Cases of a test that `make test-fast` runs."""
TRAINED = {"long_run", "run", "runs", "trained", "whole"}
"""Fixtures of the tests of training and DNA that train a model, which takes seconds."""


@pytest.hookimpl(tryfirst=True)  # before `-m "not slow"` looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks further cases and tests of trained models as slow, and refuses names that change.

    The few are drawn by their names. (Evenly spread, they could all be of one implementation.)
    Workers cannot agree on names that differ from process to process.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("fast_cases")
        fast = FAST_CASES if marker is None else marker.args[0]
        for case in sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode()))[fast:]:
            case.add_marker("slow")
    for item in items:
        trains = TRAINED & set(getattr(item, "fixturenames", ()))
        if trains and item.path.parent.name in {"dna", "training"}:
            item.add_marker("slow")
    if changing := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give ids to the parameters of {changing[0]}")


seen = 0


@pytest.fixture(autouse=True)
def imported() -> None:
    """Takes what was imported out of the garbage collector's sight.

    Each run of a Trainer collects garbage, and looking at torch and transformers took 0.8 s of it.
    """
    global seen
    if len(sys.modules) > seen + 100:
        gc.collect()
        gc.freeze()
        seen = len(sys.modules)


@pytest.fixture(autouse=True)
def independent() -> Iterator[None]:
    """Start with the same random numbers, logging and command, whatever ran before."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
    if flags := sys.modules.get("longbird.cli.flags"):
        flags.current_flags.set({})
    yield
    if logging := sys.modules.get("transformers.utils.logging"):
        logging.set_verbosity_warning()
        logging.enable_progress_bar()


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
