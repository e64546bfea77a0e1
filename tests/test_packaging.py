from __future__ import annotations

import importlib.metadata
import itertools
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import longbird as lb

if sys.version_info >= (3, 11):
    import tomllib
else:
    pytest.skip("reading pyproject.toml takes Python 3.11", allow_module_level=True)

ROOT = Path(__file__).parents[1]


def pins(file: str = "constraints.txt") -> dict[str, str]:
    lines = (ROOT / file).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> list[Requirement]:
    """What users install: the dependencies, and the extras that are not for developers."""
    extras = project()["optional-dependencies"]
    of_users = [extras[name] for name in ("train", "documents", "search", "dna")]
    texts = [*project()["dependencies"], *itertools.chain(*of_users)]
    return [Requirement(text) for text in texts]


def test_requirements_have_no_upper_bounds() -> None:
    bounds = [bound.operator for requirement in requirements() for bound in requirement.specifier]
    assert bounds
    assert set(bounds) == {">="}


def test_the_oldest_versions_are_those_that_are_tested() -> None:
    """oldest.txt has exactly the lower bounds: `make test-oldest` tests what is claimed."""
    lowest = {r.name: Version(bound.version) for r in requirements() for bound in r.specifier}
    assert {name: Version(version) for name, version in pins("oldest.txt").items()} == lowest
    python = SpecifierSet(project()["requires-python"])
    assert "3.10" in python
    assert "3.9" not in python
    assert "OLDEST_PYTHON ?= python3.10" in (ROOT / "Makefile").read_text()


def test_every_requirement_is_pinned() -> None:
    extras = project()["optional-dependencies"]
    texts = [*project()["dependencies"], *(text for extra in extras.values() for text in extra)]
    needed = [Requirement(text) for text in texts]
    here = [each for each in needed if each.marker is None or each.marker.evaluate()]
    names = {canonicalize_name(each.name) for each in here} - {"longbird"}
    assert names <= {canonicalize_name(name) for name in pins()}


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


def test_make_help_names_the_targets_that_contributors_are_told_of() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True)
    told = set(re.findall(r"`make ([\w-]+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    left_out = {"pytest"}  # a part of `make test`
    rooms = {target for target in told if (ROOT / "tests" / target.removeprefix("test-")).is_dir()}
    assert {"docs", "dist", "dist-check", "test-oldest"} <= told
    for target in told - left_out - rooms:
        assert re.search(rf"\bmake {target}\b", done.stdout), target


def test_the_oldest_python_may_be_elsewhere() -> None:
    done = subprocess.run(
        ["make", "test-oldest", "OLDEST_PYTHON=python-that-is-not-there"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode
    assert "OLDEST_PYTHON=" in done.stdout
    assert "python-that-is-not-there does not run here" in done.stdout


def test_hooks_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    lint = re.search("^lint: (.*)$", makefile, re.MULTILINE)
    entries = re.findall("entry: (.*)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert lint
    assert entries
    for entry in entries:
        assert entry.split()[:2] == ["make", "--silent"]
        assert entry.split()[2] in lint[1].split()


def check_schema(name: str, *files: Path) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}"]
    done = subprocess.run([*command, *map(str, files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow  # a process
def test_the_citation_is_valid_and_of_this_version() -> None:
    check_schema("citation-file-format", ROOT / "CITATION.cff")
    cited = re.search("^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited
    assert cited[1] == project()["version"]


def test_workflows_are_valid_and_call_what_there_is() -> None:
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert {file.stem for file in files} == {"tests", "wheels", "docs"}
    check_schema("github-workflows", *files)
    check_schema("dependabot", ROOT / ".github" / "dependabot.yml")
    check_schema("github-issue-forms", *(ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))
    makefile, text = (ROOT / "Makefile").read_text(), "".join(file.read_text() for file in files)
    for target in re.findall(r"run: make ([\w-]+)", text):
        assert re.search(f"^{target}:", makefile, re.MULTILINE), target
    for action in re.findall(r"uses: (.*)", text):
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v[\d.]+", action), "pin it by its hash"


def test_every_python_that_is_claimed_is_tested() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", " ".join(project()["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    (matrix,) = re.findall(r"python: \[(.*)\]", workflow)
    assert re.findall(r"3\.\d+", matrix) == claimed


@pytest.mark.slow  # builds it
def test_the_source_distribution_is_complete_and_clean(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir"]
    done = subprocess.run([*command, str(tmp_path), str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for folder, pattern in (("src", "*.py*"), ("csrc", "*.[hc]*"), ("docs", "*.md")):
        kept = {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob(pattern)}
        assert {name for name in kept if "__pycache__" not in name} <= names
    assert {"CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"} <= names
    assert not [name for name in names if re.match(r"(tests/)?(experiments|recipes)\b", name)]
    assert not [name for name in names if re.search(r"\.so$|\.pyc$|^build/|^\.venv", name)]
    assert file.stat().st_size < 20_000_000  # 15 MB of it are the reader, 3 the models of DNA


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


def run_in(site: Path, code: str, *arguments: str) -> str:
    """What Python code prints with the longbird of a folder, where there is no compiler."""
    # -S leaves out the editable install of the environment, whose finder would come first.
    paths = os.pathsep.join([str(site), *(path for path in sys.path if "site-packages" in path)])
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *arguments],
        env={"PYTHONPATH": paths, "COLUMNS": "200", "PATH": "", "HOME": str(site)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FORWARD_AND_BACKWARD = """
import torch, longbird as lb
q, k, v = (torch.randn(1, 2, 300, 16, requires_grad=True) for _ in range(3))
found = []
for impl in ("native", "reference"):
    out = lb.attention(q, k, v, lb.bigbird(block=16), impl=impl)
    found.append([out, *torch.autograd.grad(out.square().sum(), (q, k, v))])
torch.testing.assert_close(*found, atol=1e-5, rtol=1e-4)
print(lb.__file__)
"""


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
    assert {path.name for path in site.iterdir() if "dist-info" not in path.name} == {"longbird"}
    assert not list(site.rglob("*.so"))

    info = run_in(site, "from longbird.cli.app import main; main()", "info")
    assert "The native kernels are missing" in info
    assert "C++17 compiler" in info


@pytest.mark.slow  # a minute or two: it compiles
def test_the_wheel_has_every_instruction_set_and_suits_other_machines(copy: Path) -> None:
    """What `make dist` does, without the environments that it makes for it."""
    if sys.platform != "linux" or shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("there is no C++ compiler here")
    shutil.rmtree(copy / "dist", ignore_errors=True)
    result = build(copy, LONGBIRD_REQUIRE_NATIVE="1")
    assert result.returncode == 0, result.stdout + result.stderr
    (wheel,) = (copy / "dist").glob("*.whl")
    repair = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(copy / "repaired")]
    done = subprocess.run([*repair, str(wheel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (repaired,) = (copy / "repaired").glob("*manylinux*.whl")
    with zipfile.ZipFile(repaired) as archive:
        (kernels,) = [name for name in archive.namelist() if name.endswith(".so")]
        assert kernels.startswith("longbird/_native")  # and no library that came along
        code = archive.read(kernels)
        archive.extractall(copy / "native")
    assert str(copy) in run_in(copy / "native", FORWARD_AND_BACKWARD)
    if platform.machine() == "x86_64":
        assert all(name in code for name in (b"baseline", b"avx2", b"avx512"))


@pytest.mark.slow  # builds a wheel
def test_a_missing_compiler_is_an_error_where_kernels_are_required(copy: Path) -> None:
    result = build(copy, CXX="/nonexistent/c++", LONGBIRD_REQUIRE_NATIVE="1")
    assert result.returncode != 0
    assert "CMake configuration failed" in result.stdout + result.stderr
