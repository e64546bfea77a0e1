from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import longbird as lb

ROOT = Path(__file__).parents[1]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_requirements_have_no_upper_bounds() -> None:
    requirements = importlib.metadata.requires("longbird") or []
    assert "torch>=2.9" in requirements
    assert not [text for text in requirements if re.search("<|~=|==", text.split(";")[0])]


def test_constraints_pin_the_environment_that_is_tested() -> None:
    pinned = pins()
    assert pinned["torch"] == "2.13.0"
    for name, version in pinned.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # an optional dependency of something, for another platform
        assert installed.split("+")[0] == version, name


def test_native_kernels_are_built_where_there_is_a_compiler() -> None:
    if shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("there is no C++ compiler here")
    assert lb.implementations()["native"] == "available"


def test_importing_longbird_loads_nothing_of_the_command() -> None:
    code = "import sys, longbird; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"typer", "rich", "matplotlib", "transformers"} & set(loaded)


def test_hooks_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lint = re.search("^lint: (.*)$", makefile, re.MULTILINE)
    entries = re.findall("entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert lint and entries
    for entry in entries:
        assert entry.split()[:2] == ["make", "--silent"]
        assert entry.split()[2] in lint[1].split()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's files without its build."""
    folder = tmp_path_factory.mktemp("longbird")
    for name in ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in ("src", "csrc"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyc"))
    return folder


def build(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    # Both variables: CMake looks at CXX first and then for compilers by name.
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"]
    return subprocess.run(
        [*command, "--wheel-dir", str(folder / "dist"), str(folder)],
        env={**os.environ, "LONGBIRD_REQUIRE_NATIVE": "0", **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow  # builds a wheel
def test_without_a_compiler_it_installs_and_says_what_is_missing(copy: Path) -> None:
    result = build(copy, CXX="/nonexistent/c++")
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = (copy / "dist").glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")

    site = copy / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert (site / "longbird" / "py.typed").exists()
    assert not list(site.rglob("*.so"))

    # -S leaves out the editable install of the environment, whose finder would come first.
    paths = os.pathsep.join([str(site), *(path for path in sys.path if "site-packages" in path)])
    info = subprocess.run(
        [sys.executable, "-S", "-c", "from longbird.cli.app import main; main()", "info"],
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert info.returncode == 0, info.stderr
    assert "The native kernels are missing" in info.stdout
    assert "C++17 compiler" in info.stdout


@pytest.mark.slow  # builds a wheel
def test_a_missing_compiler_is_an_error_where_kernels_are_required(copy: Path) -> None:
    result = build(copy, CXX="/nonexistent/c++", LONGBIRD_REQUIRE_NATIVE="1")
    assert result.returncode != 0
    assert "CMake configuration failed" in result.stdout + result.stderr
