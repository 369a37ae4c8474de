"""The checks of the exercises, checked: every wrong answer gets the message meant for it, every right one passes.

The answers are in `tests/answers/`; exercises, stubs and solutions are taken from the chapters' texts.
"""

import ast
import html
import importlib
import inspect
import linecache
import pkgutil
import re

import pytest

import tests.answers
from course import exercises as form
from course import notebooks
from lib.checks import Written, exercises
from lib.checks._report import BLANK, FAILED, PASSED

for module in pkgutil.iter_modules(tests.answers.__path__):
    importlib.import_module(f"tests.answers.{module.name}")

ANSWERS = tests.answers.ANSWERS
SEEDS = range(5)  # a check draws its inputs anew: what it says must not hang on them
BLOCKS = {
    block.id: (text, block)
    for text in notebooks.chapters()
    for block in form.blocks(notebooks.derive(text))
}
CHECKED = [name for name, one in exercises().items() if not isinstance(one, Written)]

every_exercise = pytest.mark.parametrize("name", exercises())
every_check = pytest.mark.parametrize("name", CHECKED)


def ids(answers):
    return [f"{answer.exercise}-{answer.name}" for answer in answers]


WRONG = [answer for answer in ANSWERS if answer.message]
RIGHT = [answer for answer in ANSWERS if not answer.message]


@pytest.mark.parametrize("answer", WRONG, ids=ids(WRONG))
def test_a_wrong_answer_gets_its_message(answer):
    check = exercises()[answer.exercise]
    for seed in SEEDS:
        report = check.report(*answer.things(check.defines), seed=seed)
        assert report.status == FAILED, report.text()
        assert report.points == 0
        assert answer.message in report.text(), report.text()
        assert answer.message in html.unescape(re.sub(r"<[^>]+>", "", report.html()))
        if report.again:
            assert f"seed={seed})" in report.again


@pytest.mark.parametrize("answer", RIGHT, ids=ids(RIGHT))
def test_a_right_answer_passes(answer):
    check = exercises()[answer.exercise]
    texts = set()
    for seed in SEEDS:
        report = check.report(*answer.things(check.defines), seed=seed)
        assert report.status == PASSED, report.text()
        texts.add(report.text())
    assert report.points == check.points
    assert len(texts) == 1, "what a passing check says depends on its numbers"


@every_check
def test_there_are_answers_enough(name):
    assert len([a for a in WRONG if a.exercise == name]) >= 4
    assert len([a for a in RIGHT if a.exercise == name]) >= 2


def test_every_answer_answers_something():
    assert {answer.exercise for answer in ANSWERS} <= set(CHECKED)


# In the chapter's text


def world(name: str) -> dict:
    """What a stub or a solution may use: what the chapter imports, and the code that exercises show."""
    text, _ = BLOCKS[name]
    found: dict = {}
    for cell in notebooks.derive(text).cells:
        if cell.cell_type == "code":
            for node in ast.parse(cell.source).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    exec(ast.unparse(node), found)
    return found


def things(name: str, source: str) -> list:
    """The functions that a cell defines, with their source where `inspect` looks for it."""
    file = f"<{name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    found = world(name)
    found["__name__"] = "__main__"
    # the functions alone: the call of the check in a solution's cell is made by the test
    body = [node for node in ast.parse(source).body if not isinstance(node, ast.Expr)]
    exec(compile(ast.Module(body, []), file, "exec"), found)
    return [found[wanted] for wanted in exercises()[name].defines]


def code_of(cells) -> str:
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def test_text_and_checks_know_the_same_exercises():
    assert list(BLOCKS) == list(exercises())


@every_exercise
def test_the_statement_says_what_the_check_says(name):
    text, block = BLOCKS[name]
    exercise = exercises()[name]
    assert int(text.name[:2]) == exercise.chapter == int(block.number.split(".")[0])
    assert (block.points, block.minutes) == (exercise.points, exercise.minutes)
    assert block.is_written == isinstance(exercise, Written)
    first = [b.number for t, b in BLOCKS.values() if t == text]
    assert first == [f"{exercise.chapter}.{n}" for n in range(1, len(first) + 1)]


@every_check
def test_the_stub_is_not_attempted_yet(name):
    _, block = BLOCKS[name]
    report = exercises()[name].report(*things(name, block.stub.source), seed=0)
    assert report.status == BLANK, report.text()


@every_check
def test_the_solution_of_the_chapter_passes(name):
    _, block = BLOCKS[name]
    solution = code_of(block.solution)
    for seed in SEEDS:
        report = exercises()[name].report(*things(name, solution), seed=seed)
        assert report.status == PASSED, report.text()


@every_check
def test_stub_and_solution_match_line_by_line(name):
    """The same names with the same arguments and docstrings; a line of the stub is in the solution, or a blank."""
    _, block = BLOCKS[name]
    stub, solution = block.stub.source, code_of(block.solution)
    a, b = form.signatures(stub), form.signatures(solution)
    assert set(exercises()[name].defines) <= set(a)
    for defined, head in a.items():
        assert b.get(defined) == head, defined
    left = iter(solution.splitlines())
    for line in stub.splitlines():
        if line.startswith("# exercise:") or not line.strip():
            continue
        if "raise NotImplementedError" in line:
            continue
        if "..." in line and ast_blank(line):
            begin = line.split("...")[0]
            assert any(other.startswith(begin.rstrip()) for other in left), line
        else:
            assert any(other == line for other in left), f"not in the solution, in order: {line}"


def ast_blank(line: str) -> bool:
    """Whether the line holds a blank to fill in, rather than an ellipsis in words or an index."""
    from lib.checks._source import blanks

    return bool(blanks(line.strip().removesuffix(":")))


@every_check
def test_the_check_is_called_in_the_text(name):
    """Once behind the stub, and once at the end of the solution."""
    _, block = BLOCKS[name]
    call = f"check.{name}({', '.join(exercises()[name].defines)})"
    calls = [cell for cell in block.cells if cell.cell_type == "code" and call in cell.source]
    assert [("solution" in cell.metadata.get("tags", [])) for cell in calls] == [False, True]
    assert block.cells.index(calls[0]) > block.cells.index(block.stub)


@every_exercise
def test_an_exercise_is_whole(name):
    """Statement, stub, hints, a solution and its reason; solutions folded everywhere."""
    _, block = BLOCKS[name]
    prose = [cell for cell in block.solution if cell.cell_type == "markdown"]
    assert prose and all(re.match(r"<details>\n<summary>.+</summary>\n\n", c.source) for c in prose)
    assert all(cell.source.endswith("\n\n</details>") for cell in prose)
    if not block.is_written:
        assert 1 <= len(block.hints) <= 4
    for cell in block.solution:
        if cell.cell_type == "code":
            assert "hide-cell" in cell.metadata["tags"]
            assert cell.metadata["jupyter"]["source_hidden"]
    if block.is_written:
        assert "*Write your answer here.*" in block.stub.source


@every_check
def test_the_code_that_is_shown_is_the_code_that_is_checked(name):
    _, block = BLOCKS[name]
    shown = code_of(block.tagged("given"))
    for function in exercises()[name].shows:
        ours = ast.dump(ast.parse(inspect.getsource(function)))
        theirs = [ast.dump(ast.Module([n], [])) for n in ast.parse(shown).body]
        assert ours in theirs, f"{function.__name__} in the text is another one"


@every_check
def test_the_names_are_defined_nowhere_else_in_the_chapter(name):
    """Or an unanswered stub would stand beside a function that passes."""
    text, block = BLOCKS[name]
    inside = {cell.id for cell in block.cells}
    for cell in notebooks.derive(text).cells:
        if cell.cell_type == "code" and cell.id not in inside:
            defined = re.findall(r"^(?:def|class) (\w+)|^(\w+) = ", cell.source, re.M)
            assert not {n for pair in defined for n in pair} & set(exercises()[name].defines)


@pytest.mark.parametrize("chapter", sorted({e.chapter for e in exercises().values()}))
def test_a_chapter_has_three_or_more_that_grow(chapter):
    own = list(exercises(chapter).values())
    assert len(own) >= 3
    assert own[0].points == min(one.points for one in own)
