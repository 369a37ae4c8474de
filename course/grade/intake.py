"""What an LMS hands over: whose is which file, and which of them counts. Nothing is unpacked, no link followed."""

import csv
import io
import os
import re
import unicodedata
import zipfile
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath

from course.grade.submission import MOST_BYTES

ENDINGS = (".ipynb", ".py", ".txt", ".zip", ".html", ".pdf", ".md", ".docx", ".json")
# Canvas: sortable name, maybe LATE, the user's number, the attachment's number, the file's name
CANVAS = re.compile(
    r"^(?P<name>[^_]+)_(?:(?P<late>LATE)_)?(?P<id>\d+)_(?P<attachment>\d+)_(?P<file>.+)$"
)
# Moodle: full name, the participant's number, what kind of submission
MOODLE = re.compile(
    r"^(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)(?:_(?P<file>.*)|\.html)?$"
)
SKIPPED = {"__MACOSX", ".ipynb_checkpoints", "__pycache__", ".git"}


class BadInput(ValueError):
    """The teacher's input can't be used; the message says why and what to do."""


@dataclass
class Student:
    id: str  # the roster's, or the LMS's, or what the file is called
    name: str = ""
    canvas: str = ""  # Canvas's number
    moodle: str = ""  # Moodle's participant number
    email: str = ""
    login: str = ""
    section: str = ""
    handed_in: datetime | None = None  # as the roster says
    graded: str = ""  # when Moodle's worksheet says that it was graded last, in Moodle's words


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
        return max(good, key=lambda f: (f.when, f.attachment, version(f.name), f.path))

    @property
    def notes(self) -> list[str]:
        files = [f for f in self.files if f.name.lower().endswith((".ipynb", ".py"))]
        if len(files) < 2:
            return []
        return [f"You handed in {len(files)} files. The latest counts: {self.counts.name}"]


def version(name: str) -> int:
    """Canvas writes -1, -2 behind the name of a file that is handed in again."""
    found = re.search(r"-(\d{1,3})\.\w+$", name)
    return int(found[1]) if found else 0


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
    for file, owner in files(path):
        if file is None:
            aside.append(owner)
            continue
        student = who(owner, file, roster)
        known = found.setdefault(student.id, Submission(student))
        known.files.append(file)
    if not found:
        raise BadInput(
            f"{path}: there is no submission in it (looked for {', '.join(ENDINGS[:2])} and the like)"
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
                elif wanted(name):
                    stat = file.stat()
                    when = datetime.fromtimestamp(stat.st_mtime).astimezone()
                    yield File("/".join(parts), name, when, stat.st_size, file), parts
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in sorted(archive.infolist(), key=lambda i: i.filename):
                parts = PurePosixPath(info.filename).parts
                if info.is_dir() or not parts or SKIPPED & set(parts) or not wanted(parts[-1]):
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


def wanted(name: str) -> bool:
    return not name.startswith(".") and name.lower().endswith(ENDINGS)


def who(parts: tuple[str, ...], file: File, roster: list[Student]) -> Student:
    """Whose a file is, by Moodle's or Canvas's naming, or by the folder or file that bears an id or a name."""
    for part in parts[:-1]:
        if match := MOODLE.match(part):
            return _moodle(match, roster)
    stem = PurePosixPath(parts[-1]).stem
    if match := MOODLE.match(parts[-1]):
        file.name = match["file"] or parts[-1]
        return _moodle(match, roster)
    if match := CANVAS.match(parts[-1]):
        file.name, file.attachment = match["file"], int(match["attachment"])
        file.late = bool(match["late"])
        known = next((s for s in roster if s.canvas == match["id"]), None)
        return known or Student(match["id"], match["name"], canvas=match["id"])
    # one folder a student, maybe within a folder of all; else one file a student
    own = parts[-2] if len(parts) > 1 else stem
    for label in (own, stem):
        for student in roster:
            if label in (student.id, student.login, student.email) or (
                student.name and plain(label) == plain(student.name)
            ):
                return student
    return Student(own)


def _moodle(match: re.Match, roster: list[Student]) -> Student:
    known = next((s for s in roster if s.moodle == match["id"]), None)
    if known is None:
        same = [s for s in roster if s.name and plain(s.name) == plain(match["name"])]
        known = same[0] if len(same) == 1 else None
    if known:
        known.moodle = known.moodle or match["id"]
        return known
    return Student(match["id"], match["name"], moodle=match["id"])


def plain(name: str) -> str:
    """A name for comparison: no accents, no order of its parts, no case."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode() or name
    return " ".join(sorted(re.findall(r"\w+", letters.replace("_", " ").casefold())))


COLUMNS = {  # what a roster's columns may be called, in Canvas's, Moodle's and anybody's export
    "id": ("student id", "student_id", "sis user id", "id number", "username"),
    "name": ("student", "name", "full name", "student name"),
    "canvas": ("canvas", "canvas id"),
    "moodle": ("identifier", "moodle", "participant"),
    "email": ("email address", "email", "e-mail", "mail"),
    "login": ("sis login id", "login", "login id"),
    "section": ("section", "group", "groups"),
    "graded": ("last modified (grade)",),
    "handed_in": ("last modified (submission)", "submitted", "handed in"),
}


def roster(path: Path | None) -> list[Student]:
    """The students of a course, from Canvas's gradebook, Moodle's grading worksheet, or a CSV of one's own.

    Raises:
        BadInput: it can't be read, or no column says who is who.
    """
    if path is None:
        return []
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"roster {path}: {error}; expected a CSV file in UTF-8") from None
    delimiter = ";" if text.split("\n")[0].count(";") > text.split("\n")[0].count(",") else ","
    rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
    if not rows:
        raise BadInput(
            f"roster {path}: it has no rows; expected a header and a line for each student"
        )
    headers = {(h or "").strip().lower(): h for h in rows[0] if h}
    column = {
        field: next((headers[n] for n in names if n in headers), None)
        for field, names in COLUMNS.items()
    }
    if "id" in headers:  # Canvas's own number where the file is Canvas's, else the students'
        is_canvas = "sis user id" in headers or "sis login id" in headers
        column["canvas" if is_canvas else "id"] = headers["id"]
    found = []
    for row in rows:
        value = {f: (row.get(c) or "").strip() if c else "" for f, c in column.items()}
        value["moodle"] = re.sub(r"\D", "", value["moodle"])
        key = value["id"] or value["login"] or value["email"] or value["canvas"] or value["moodle"]
        if not key or value["name"].strip().lower() in ("points possible", "student, test"):
            continue  # Canvas's second row, and its test student
        when = when_said(value.pop("handed_in"))
        found.append(Student(**{**value, "id": key}, handed_in=when))
    if not found:
        known = ", ".join(sorted(n for names in COLUMNS.values() for n in names))
        raise BadInput(f"roster {path}: no column that I know holds an id; I know {known}")
    return found


def when_said(text: str) -> datetime | None:
    """A time as LMSs write it: ISO, or Moodle's "Monday, 30 November 2026, 2:15 PM"."""
    text = text.strip()
    for read in (
        datetime.fromisoformat,
        lambda t: datetime.strptime(t, "%A, %d %B %Y, %I:%M %p"),
        lambda t: datetime.strptime(t, "%A, %d %B %Y, %H:%M"),
    ):
        try:
            return read(text).astimezone()
        except ValueError:
            continue
    return None
