"""Code compiled for one instruction set cannot end up in code that runs on every processor."""

import shutil
import subprocess
from pathlib import Path

import pytest

OBJECTS = sorted(
    Path(__file__).parents[3].glob("build/cp3*/CMakeFiles/kernels.dir/csrc/attention_*.cpp.o")
)


@pytest.mark.skipif(not OBJECTS, reason="the kernels were not built in this folder")
@pytest.mark.skipif(shutil.which("nm") is None, reason="nm is not installed")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name)
def test_kernel_objects_share_no_function_with_others(path):
    listing = subprocess.run(
        ["nm", "--demangle", "--defined-only", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    symbols = [line.split(maxsplit=2)[1:] for line in listing.splitlines()]
    # W, w and u are merged by the linker; T is visible to other files. All others are local.
    shared = [name for kind, name in symbols if kind in "WwuT"]
    assert not shared, "make these inline or local, for example by avoiding the template"
    assert any(name.endswith("run_forward") or "run_forward(" in name for _, name in symbols)
