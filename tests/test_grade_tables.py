"""Around the grading itself: whose is which file, what is late, marks by hand, tables without formulas, the journal."""

import csv
import json
import os
import zipfile
from datetime import datetime, timedelta, timezone

import pytest

from course.grade import intake, late, roster, tables, words
from course.grade.assignment import safe_name
from course.grade.journal import Journal

# Whose


def made_zip(path, names, when=(2026, 11, 30, 12, 0, 0)):
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names):
            info = zipfile.ZipInfo(name, (*when[:4], when[4] + number, 0))
            archive.writestr(info, name)
    return path


def by_id(path, roster=None):
    found, _ = intake.submissions(path, roster)
    return {s.student.id: s for s in found}


def test_moodle_names(tmp_path):
    # fmt: off
    found = by_id(made_zip(tmp_path / "m.zip", [
        "Zoë O'Brien_123_assignsubmission_file_/06_matrix_form.ipynb",
        "Max von_Muster_124_assignsubmission_file_06.ipynb",
        "Max von_Muster_124_assignsubmission_onlinetext.html",
        "__MACOSX/Zoë_1_assignsubmission_file_/x.ipynb", ".DS_Store"]))
    # fmt: on
    assert set(found) == {"123", "124"}
    assert found["123"].student.name == "Zoë O'Brien" and found["123"].student.moodle == "123"
    assert found["123"].counts.name == "06_matrix_form.ipynb"
    assert found["124"].counts.name == "06.ipynb" and found["124"].student.name == "Max von_Muster"


def test_canvas_names(tmp_path):
    names = [
        "mustermax_LATE_77_9001_06.ipynb",
        "obrienzoe_78_9002_06.ipynb",
        "obrienzoe_78_9005_06-1.ipynb",
    ]
    for name in names:
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (1e9, 1e9))  # a download may give all files one time
    found = by_id(tmp_path)
    assert set(found) == {"77", "78"}
    assert found["77"].counts.late and found["77"].student.canvas == "77"
    assert found["78"].counts.attachment == 9005
    assert found["78"].notes == ["You handed in 2 files. The latest counts: 06-1.ipynb"]


def test_a_folder_or_a_file_for_each(tmp_path):
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "work.ipynb").write_text("a")
    (tmp_path / "ann" / "notes.txt").write_text("a")
    (tmp_path / "bob.ipynb").write_text("b")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "bob.ipynb").write_text("b")
    found = by_id(tmp_path)
    assert set(found) == {"ann", "bob"}
    assert found["ann"].counts.name == "work.ipynb" and found["ann"].notes == []


def test_a_roster_knows_who_is_who(tmp_path):
    canvas = tmp_path / "canvas.csv"
    canvas.write_text(
        "Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"
        '"O\'Brien, Zoë",78,s0078,zoe,A\n"Muster, Max",77,s0077,max,B\n',
        "utf-8-sig",
    )
    moodle = tmp_path / "moodle.csv"
    moodle.write_text(
        "Identifier,Full name,Email address,Last modified (submission)\n"
        'Participant 123,Zoë O\'Brien,zoe@x.org,"Monday, 30 November 2026, 2:15 PM"\n'
    )
    own = tmp_path / "own.csv"
    own.write_text("id;name\ns1;Zoë O'Brien\ns2;Max Muster\n")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "obrienzoe_78_9002_06.ipynb").write_text("")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "Zoë O'Brien_123_assignsubmission_file_06.ipynb").write_text("")
    (one,) = by_id(tmp_path / "c", roster.read(canvas)).values()
    assert (one.student.id, one.student.canvas, one.student.name) == ("s0078", "78", "O'Brien, Zoë")
    (one,) = by_id(tmp_path / "m", roster.read(moodle)).values()
    assert one.student.id == "zoe@x.org" and one.student.handed_in.hour == 14
    (one,) = by_id(tmp_path / "m", roster.read(own)).values()
    assert (one.student.id, one.student.moodle) == ("s1", "123")  # by name, which is unique


def whose(path, *names, roster=None):
    """Each file's owner by id, and what was left aside, of a zip with these names."""
    found, aside = intake.submissions(made_zip(path / "z.zip", names), roster)
    return {f.name: s.student.id for s in found for f in s.files}, aside


COURSE = [
    roster.Student("ann", "Abel, Ann", canvas="123", moodle="501"),
    roster.Student("bo", "Berg, Bo", canvas="99", moodle="12"),
]


def test_the_end_of_a_name_does_not_choose_the_owner(tmp_path):
    """A student names the file; Moodle and Canvas put what counts in front of it."""
    # fmt: off
    owners, aside = whose(tmp_path,
        "Ann Abel_501_assignsubmission_file_my_12_assignsubmission_file_06.ipynb",
        "Ann Abel_501_assignsubmission_file_/Bo Berg_12_assignsubmission_file_/x.ipynb",
        "abelann_123_456_99_1_y.ipynb", roster=COURSE)
    # fmt: on
    assert set(owners.values()) == {"ann"} and len(owners) == 3 and aside == []
    owners, _ = whose(tmp_path, "abelann_123_456_99_1_y.ipynb")
    assert owners == {"99_1_y.ipynb": "123"}


def test_a_name_with_the_numbers_of_two_students_is_nobody_s(tmp_path):
    """Who may choose a name in Canvas could choose one that ends in another's number."""
    owners, aside = whose(
        tmp_path, "x_99_1_123_456_06.ipynb", "bergbo_99_457_06.ipynb", roster=COURSE
    )
    assert owners == {"06.ipynb": "bo"} and "numbers of several students" in aside[0]
    assert "NOT graded" in aside[0]


@pytest.mark.parametrize(
    "name",
    [
        "abel_ann_123_456_06_matrix_form.ipynb",  # Canvas keeps an underline
        "annabel_LATE_123_456_06_12_final.ipynb",
        "anny_123_456_06.ipynb",  # another name than the roster's: the number decides
        "submissions/abelann_123_456_06.ipynb",  # unpacked, and packed again by hand
        "abelann_123_text.html",
        "abelann_LATE_123_link.html",
        "abelann_123_456_work.rar",
        "Ann Abel_501_assignsubmission_file_/work.7z",
        "Participant_501_assignsubmission_file_/06.ipynb",
        "ABEL Ann_501_assignsubmission_onlinetext.html",
    ],
)
def test_forms_of_moodle_and_canvas(tmp_path, name):
    owners, aside = whose(tmp_path, name, roster=COURSE)
    assert list(owners.values()) == ["ann"] and aside == []
    found, _ = intake.submissions(tmp_path / "z.zip", COURSE)
    assert found[0].counts.late == ("LATE" in name and "text" not in name)


@pytest.mark.parametrize(
    "name, words",
    [
        ("Team A_12_assignsubmission_file_/06.ipynb", "12 is Berg, Bo in the roster, and Team A here"),
        ("Default group_assignsubmission_file_/06.ipynb", "Default group is a group"),
    ],
)  # fmt: skip
def test_a_group_of_moodle_is_not_taken_for_a_student(tmp_path, name, words):
    owners, aside = whose(
        tmp_path, name, "Ann Abel_501_assignsubmission_file_/x.ipynb", roster=COURSE
    )
    assert owners == {"x.ipynb": "ann"} and words in aside[0] and "NOT graded" in aside[0]


def test_canvas_without_names(tmp_path):
    # fmt: off
    owners, _ = whose(tmp_path, "anon_aB3cD_456_06.ipynb", "LATE_anon_aB3cD_457_06-1.ipynb",
                      "anon_12345_458_07.ipynb")
    # fmt: on
    assert set(owners.values()) == {"anon_aB3cD", "anon_12345"} and len(owners) == 3
    assert owners["06.ipynb"] == owners["06-1.ipynb"]


def test_two_of_one_name_stay_two(tmp_path):
    own = [roster.Student("s1", "Ann Abel"), roster.Student("s2", "Bo Berg")]
    names = [f"Ann Abel_{n}_assignsubmission_file_/{n}.ipynb" for n in (501, 777)]
    owners, _ = whose(tmp_path, *names, roster=own)
    assert owners == {"501.ipynb": "s1", "777.ipynb": "777"}
    twins = [roster.Student("s1", "Ann Abel"), roster.Student("s2", "Ann Abel")]
    owners, _ = whose(tmp_path, "Ann Abel/06.ipynb", roster=twins)
    assert owners == {"06.ipynb": "Ann Abel"}


def test_a_student_s_own_numbers_are_not_canvas_s(tmp_path):
    owners, _ = whose(tmp_path, "ann/hw_3_06_final.ipynb", "bo/hw_3_07_final.ipynb")
    assert set(owners.values()) == {"ann", "bo"}


def test_nobody_vanishes_without_a_word(tmp_path):
    owners, aside = whose(tmp_path, "ann/06.ipynb", "ann/photo.png", "bo/photo.png")
    assert owners == {"06.ipynb": "ann"}
    assert aside == ["bo/photo.png: neither a notebook nor a script"]
    with pytest.raises(roster.BadInput, match=r"no submission in it.*\n.*photo.png"):
        whose(tmp_path, "bo/photo.png")


@pytest.mark.parametrize("again", ["06-1.ipynb", "06 (1).ipynb"])
def test_the_same_name_again_is_the_later_one(tmp_path, again):
    when = (2026, 11, 30, 12, 0, 0)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:  # all with the time of the download
        for name in (again, "06.ipynb"):
            place = f"Ann_1_assignsubmission_file_/{name}"
            archive.writestr(zipfile.ZipInfo(place, when), name)
    (one,) = intake.submissions(tmp_path / "z.zip")[0]
    assert one.counts.name == again


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("O'Brien, Zoë", "Zoe OBrien", True),
        ("Anne-Marie Kühn", "Kuhn, AnneMarie", True),
        ("Ли Вэй", "вэй, ли", True),
        ("Ли Вэй", "Ли Ян", False),
        ("Ann", "Nan", False),
        ("Ann Abel", "Ann", False),
    ],
)
def test_forms_of_one_name(one, other, same):
    assert roster.same_name(one, other) == same


def test_rosters_with_names_in_two_columns(tmp_path):
    sheet = tmp_path / "r.csv"
    sheet.write_text(
        "LastName,FirstName,ID,SIS Login ID,Section\nAbel,Ann,123,ann,A\nStudent,Test,7,test,A\n"
    )
    (ann,) = roster.read(sheet)
    assert (ann.name, ann.canvas) == ("Abel, Ann", "123")


@pytest.mark.parametrize(
    "text",
    ["2026-11-30 14:15", "Monday, 30 November 2026, 2:15 PM", "Monday, 30 November 2026, 14:15",
     "Monday, November 30, 2026, 2:15 PM"],
)  # fmt: skip
def test_times_as_an_lms_writes_them(text):
    assert roster.when_said(text).replace(tzinfo=None) == datetime(2026, 11, 30, 14, 15)


@pytest.mark.parametrize("text", ["", "-", "30/11/26", "yesterday"])
def test_times_that_can_not_be_read(text):
    assert roster.when_said(text) is None


@pytest.mark.parametrize("text", ["", "a,b\n", "colour,size\nred,3\n"])
def test_a_roster_that_is_none(tmp_path, text):
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(intake.BadInput, match="roster"):
        roster.read(tmp_path / "r.csv")


def test_what_can_not_be_taken_in(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.rar").write_text("Rar!")
    for path in ("empty", "x.rar", "nowhere"):
        with pytest.raises(intake.BadInput, match=path):
            intake.submissions(tmp_path / path)


def test_links_and_paths_out_of_a_zip_lead_nowhere(tmp_path):
    (tmp_path / "secret.ipynb").write_text("secret")
    inside = tmp_path / "in"
    inside.mkdir()
    (inside / "a.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (inside / "b.ipynb").write_text("b")
    found, aside = intake.submissions(inside)
    assert [s.student.id for s in found] == ["b"] and "not followed" in aside[0]
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("../../evil.ipynb", "x")
        link = zipfile.ZipInfo("link.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    found, aside = intake.submissions(tmp_path / "z.zip")
    assert found[0].counts.read() == b"x" and "link.ipynb" in aside[0]
    assert not (tmp_path.parent / "evil.ipynb").exists()


def test_a_zip_that_lies_about_its_size(tmp_path, monkeypatch):
    monkeypatch.setattr(intake, "MOST_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.ipynb", b"\0" * 10**7)
    found, _ = intake.submissions(tmp_path / "z.zip")
    assert len(found[0].counts.read()) == 1001


# Late

UTC = timezone.utc  # noqa: UP017
DUE = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.fixture
def rules(tmp_path):
    file = tmp_path / "late.toml"
    file.write_text(
        "deadline = 2026-12-01T12:00:00Z\ngrace_minutes = 15\nlost_per_day = 0.2\nlost_at_most = 0.5\n"
        "closed_after_days = 7\n[longer]\nann = 2026-12-03T12:00:00Z\n"
    )
    return late.read(file)


@pytest.mark.parametrize(
    "who, after, share",
    [
        ("bob", timedelta(minutes=-1), 1),
        ("bob", timedelta(minutes=15), 1),
        ("bob", timedelta(minutes=16), 0.8),
        ("bob", timedelta(days=1), 0.8),
        ("bob", timedelta(days=1, minutes=1), 0.6),
        ("bob", timedelta(days=5), 0.5),
        ("bob", timedelta(days=8), 0),
        ("ann", timedelta(days=1), 1),
        ("ann", timedelta(days=2, hours=1), 0.8),
    ],
)
def test_what_being_late_costs(rules, who, after, share):
    found, said = rules.share(who, DUE + after)
    assert found == pytest.approx(share)
    assert bool(said) == (share < 1)


@pytest.mark.parametrize(
    "text, word",
    [("deadline = 5", "deadline"), ("lost_per_day = 2", "lost_per_day"), ("dedline = 1", "dedline"),
     ("x =", "late rules"), ("grace_minutes = -1", "grace_minutes"), ("lost_per_day = true", "lost_per_day")],
)  # fmt: skip
def test_rules_that_are_none(tmp_path, text, word):
    (tmp_path / "late.toml").write_text(text)
    with pytest.raises(intake.BadInput, match=word):
        late.read(tmp_path / "late.toml")


# Tables


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", '=HYPERLINK("x")']
)
def test_no_cell_is_a_formula(text):
    assert tables.harmless(text).startswith("'")


@pytest.mark.parametrize("text", ["", "Zoë", 'O\'Brien, "Z"', "a=1", "3.5"])
def test_other_words_stay(text):
    assert tables.harmless(text) == text


def test_a_table_comes_back_as_it_was(tmp_path):
    rows = [["id", 1.5, 'O\'Brien, "Zoë"\nMüller'], ["=x", 2, "b"]]
    tables.write(tmp_path / "t.csv", rows, mark=True)
    with (tmp_path / "t.csv").open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file)) == [
            ["id", "1.5", 'O\'Brien, "Zoë"\nMüller'],
            ["'=x", "2", "b"],
        ]


def test_names_of_files():
    assert safe_name("ann.b-c") == "ann.b-c"
    names = [
        safe_name(n)
        for n in ("../../etc/passwd", "a/b", "a_b", "…", "..", "", "x" * 300, "Zoë", "CON\0")
    ]
    assert len(set(names)) == len(names)
    assert all("/" not in n and not n.startswith(".") and len(n) < 100 for n in names)


# The journal


def entry(student, exercise, points, file="f", checks="c"):
    return {
        "student": student,
        "exercise": exercise,
        "file": file,
        "checks": checks,
        "result": points,
    }


def test_the_journal_survives_a_line_cut_off(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.write([entry("a", "x", 1), entry("a", "y", 2)])
    whole = (tmp_path / "j").read_bytes()
    with (tmp_path / "j").open("ab") as file:
        file.write(whole[:17])  # killed while writing
    again = Journal(tmp_path / "j")
    assert again.get("a", "y")["result"] == 2 and len(again.lines) == 2
    again.write([entry("b", "x", 3)])
    assert [
        json.loads(line)["student"] for line in (tmp_path / "j").read_text().splitlines()
    ] == list("aab")


def test_the_last_line_counts_and_other_files_or_checks_are_not_fresh(tmp_path):
    journal = Journal(tmp_path / "j")
    journal.write([entry("a", "x", 1), entry("a", "x", 5)])
    journal = Journal(tmp_path / "j")
    assert journal.get("a", "x")["result"] == 5
    assert journal.fresh("a", "x", "f", "c")
    assert not journal.fresh("a", "x", "other", "c")
    assert not journal.fresh("a", "x", "f", "other")
    assert not journal.fresh("b", "x", "f", "c")


def test_what_moodle_looks_for(tmp_path):
    """Its importer refuses a worksheet without these three columns, and finds people by the number behind the name."""
    sheet = tmp_path / "roster.csv"
    sheet.write_text(
        "Identifier,Full name,Email address,Last modified (grade)\n"
        'Participant 7,"O_Neill, Zoë",z@x.org,"Monday, 30 November 2026, 2:15 PM"\nParticipant 8,Max,m@x.org,-\n'
    )
    rows = [{"student": s, "grade": 3, "state": "graded", "notes": []} for s in roster.read(sheet)]
    tables.moodle(tmp_path / "moodle.csv", 6, rows)
    with (tmp_path / "moodle.csv").open(encoding="utf8", newline="") as file:
        zoe, most = csv.DictReader(file)
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(zoe)
    assert "Feedback comments" not in zoe, "an empty cell would wipe out a comment typed in Moodle"
    assert (zoe["Identifier"], zoe["Grade"]) == ("Participant 7", "3")
    assert zoe["Last modified (grade)"] == "Monday, 30 November 2026, 2:15 PM"
    assert most["Last modified (grade)"] == ""


# Marks by hand

ROWS = [{"code": "abc", "student": "ann", "exercise": "why", "most": 3, "answer": "So."}]


@pytest.mark.parametrize("text, mark", [("2", 2), ("2.5", 2.5), ("2,5", 2.5), ("0", 0)])
def test_marks_come_back(tmp_path, text, mark):
    file = tmp_path / "marks.csv"
    file.write_text(f"code;exercise;most;mark;comment\nabc;why;3;{text};well said\n", "utf-8-sig")
    marks = words.marked(ROWS, words.read_marks(file), file)
    assert marks == {("ann", "why"): (mark, "well said")}


@pytest.mark.parametrize("text", ["4", "-1", "good", "nan", "1e9"])
def test_a_mark_that_is_none(tmp_path, text):
    file = tmp_path / "marks.csv"
    file.write_text(f"code,mark\nabc,{text}\n")
    with pytest.raises(intake.BadInput, match="abc"):
        words.marked(ROWS, words.read_marks(file), file)


def test_no_mark_yet(tmp_path):
    file = tmp_path / "marks.csv"
    assert words.read_marks(file) == {}
    file.write_text("code,mark\nabc,\n")
    assert words.marked(ROWS, words.read_marks(file), file) == {}
    file.write_text("kode,mark\n")
    with pytest.raises(intake.BadInput, match="code"):
        words.read_marks(file)


def test_a_code_says_nothing_without_the_secret():
    one, other = words.code("00" * 16, "ann", "why"), words.code("11" * 16, "ann", "why")
    assert one != other and "ann" not in one
    assert len({words.code("00" * 16, s, "why") for s in "abcdefgh"}) == 8
