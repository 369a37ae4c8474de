"""What an LMS hands over: whose is which file, and which of them counts. Nothing is unpacked, no link followed."""

import os
import re
import zipfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from course.grade.roster import BadInput, Student
from course.grade.submission import MOST_BYTES
from course.grade.whose import Unclear, who

ENDINGS = (".ipynb", ".py", ".txt", ".zip", ".html", ".pdf", ".md", ".docx", ".json")
SKIPPED = {"__MACOSX", ".ipynb_checkpoints", "__pycache__", ".git"}


@dataclass
class File:
    """One file of a submission."""

    path: str  # as the teacher sees it
    name: str  # as the student named it
    when: datetime
    size: int
    source: Path  # the zip it lies in, or the file itself
    member: str = ""  # its name in the zip
    attachment: int = 0  # Canvas counts them up
    late: bool = False  # as Canvas says

    def read(self) -> bytes:
        """Its bytes, and no more of them than a submission may have: a zip may lie about a size."""
        if not self.member:
            with self.source.open("rb") as file:
                return file.read(MOST_BYTES + 1)
        with zipfile.ZipFile(self.source) as archive, archive.open(self.member) as file:
            return file.read(MOST_BYTES + 1)


@dataclass
class Submission:
    student: Student
    files: list[File] = field(default_factory=list)

    @property
    def counts(self) -> File:
        """The file that counts: of those that could be a notebook, the latest."""
        good = [f for f in self.files if f.name.lower().endswith((".ipynb", ".py"))]
        good = [f for f in good if f.name.lower().endswith(".ipynb")] or good or self.files
        return max(good, key=lambda f: (f.attachment, f.when, version(f.name), f.path))

    @property
    def notes(self) -> list[str]:
        files = [f for f in self.files if f.name.lower().endswith((".ipynb", ".py"))]
        if len(files) < 2:
            return []
        return [f"You handed in {len(files)} files. The latest counts: {self.counts.name}"]


def version(name: str) -> int:
    """What stands behind the name of a file that is handed in again: -1 in Canvas, (1) in Moodle."""
    found = re.search(r"(?:-(\d{1,3})| \((\d{1,3})\))\.\w+$", name)
    return int(found[1] or found[2]) if found else 0


def submissions(
    path: Path, roster: list[Student] | None = None
) -> tuple[list[Submission], list[str]]:
    """All submissions of a zip or a folder, one a student, and what was left aside, in words.

    Raises:
        BadInput: there is nothing, or it can't be read.
    """
    roster = roster or []
    found: dict[str, Submission] = {}
    aside: list[str] = []
    others: list[tuple[str, File]] = []
    for file, parts in files(path):
        if file is None:
            aside.append(parts)  # in words, why
            continue
        try:
            owner = who(parts, roster)
        except Unclear as error:
            aside.append(f"{file.path}: NOT graded: {error}")
            continue
        file.name, file.attachment, file.late = owner.file, owner.attachment, owner.late
        if owner.by_lms or file.name.lower().endswith(ENDINGS):
            known = found.setdefault(owner.student.id, Submission(owner.student))
            known.files.append(file)
        else:
            others.append((owner.student.id, file))
    # pictures beside a notebook are nobody's concern; a student with nothing else would vanish without a word
    lost = [file for student, file in others if student not in found]
    aside += [f"{file.path}: neither a notebook nor a script" for file in lost]
    if not found:
        told = "".join(f"\n  left aside: {line}" for line in aside[:5])
        raise BadInput(
            f"{path}: there is no submission in it (looked for {', '.join(ENDINGS[:2])} and the like){told}"
        )
    return sorted(found.values(), key=lambda s: s.student.id), aside


def files(path: Path):
    """Every file with the parts of its path; (None, words) for what is left aside."""
    if path.is_dir():
        for folder, inside, names in os.walk(path, followlinks=False):
            inside[:] = sorted(n for n in inside if n not in SKIPPED and not n.startswith("."))
            for name in sorted(names):
                file = Path(folder, name)
                parts = file.relative_to(path).parts
                if file.is_symlink() or not file.is_file():
                    yield None, f"{'/'.join(parts)}: a link, not followed"
                elif not name.startswith("."):
                    stat = file.stat()
                    when = datetime.fromtimestamp(stat.st_mtime).astimezone()
                    yield File("/".join(parts), name, when, stat.st_size, file), parts
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in sorted(archive.infolist(), key=lambda i: i.filename):
                parts = PurePosixPath(info.filename).parts
                if info.is_dir() or not parts or SKIPPED & set(parts) or parts[-1].startswith("."):
                    continue
                when = datetime(*info.date_time).astimezone()
                made = File(info.filename, parts[-1], when, info.file_size, path, info.filename)
                if (info.external_attr >> 16) & 0o170000 == 0o120000:
                    yield None, f"{info.filename}: a link, not followed"
                else:
                    yield made, parts
    elif path.exists():
        raise BadInput(
            f"{path} is neither a folder nor a zip: give what your LMS lets you download"
        )
    else:
        raise BadInput(f"{path} does not exist")
