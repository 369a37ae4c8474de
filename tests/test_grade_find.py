"""Reading what was handed in, and finding the work in it, whatever became of cells, order and metadata."""

import json

import pytest

from course.grade import submission
from course.grade.find import Notebook, used, work, written_answer
from course.grade.submission import Cell, plain_python
from lib.checks import exercise

NOTHING = Notebook([])


@exercise(chapter=1, points=1, minutes=1, defines="f")
def twice(t):
    t.step("a number")
    t.equal(t.student(3), 6)


def cells(*sources, ids=None, kind="code"):
    return [Cell(kind, s, n, (ids or {}).get(n)) for n, s in enumerate(sources, start=1)]


def found(*sources, chapter=(), **options):
    return work(twice, Notebook(cells(*sources, **options)), Notebook(cells(*chapter)))


def run(work):
    world = {"__name__": "__main__"}
    for name, source in work.pieces:
        exec(compile(source, name, "exec"), world)
    return world["f"](3)


def test_the_answer_alone_runs():
    """Not what stands around it: plots, trainings, loops without end."""
    got = found(
        "import math\nraise SystemExit", "1 / 0", "def f(x):\n    return 2 * x", "while True: pass"
    )
    assert run(got) == 6
    assert [name for name, _ in got.pieces] == ["cell 3"]


def test_what_it_uses_comes_along():
    # fmt: off
    got = found("import math, os\nfrom functools import reduce as fold", "A = 1\nB = A + 1",
                "def g(x):\n    return B * x",
                "print(A)",
                "def f(x):\n    math.pi\n    return fold(max, [g(x)])", "def g(x):\n    return 0")
    # fmt: on
    assert run(got) == 6
    whole = "\n".join(source for _, source in got.pieces)
    assert "print" not in whole and "return 0" not in whole


def test_what_stands_below_is_found_too():
    assert run(found("def f(x):\n    return g(x)", "def g(x):\n    return TWO * x", "TWO = 2")) == 6


def test_names_of_its_own_bring_nothing_along():
    got = found("x = 1 / 0\ny = 1 / 0", "def f(x):\n    y = [x for x in [x]]\n    return 2 * y[0]")
    assert run(got) == 6 and len(got.pieces) == 1


def test_what_names_a_statement_looks_up():
    assert used("def f(a, b=c):\n    d = a\n    return e(d) + [g for g in h]") == {"c", "e", "h"}
    assert used("class A(B):\n    x = y\n    def m(self):\n        return z") == {"B", "y", "z"}
    assert used("f = lambda a: a + k") == {"k"}


def test_what_is_added_to_comes_with_what_was_there():
    assert run(found("A = 1", "A += 1", "def f(x):\n    return A * x")) == 6


def test_imports_that_are_missing_come_from_the_chapter():
    got = found("def f(x):\n    return int(math.ceil(2 * x))", chapter=["import math\nimport os"])
    assert run(got) == 6


def test_the_chapters_own_function_is_no_work():
    given = "def f(x):\n    return 2 * x"
    stub = "# exercise: twice\ndef f(x):\n    return ..."
    got = found(given, stub, chapter=[given])
    assert got.sources["f"].strip().endswith("return ...")


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_the_one_that_is_filled_in_counts(first):
    both = [
        "# exercise: twice\ndef f(x):\n    ...",
        "# exercise: twice\ndef f(x):\n    return 2 * x",
    ]
    assert run(found(*both[first:], *both[:first])) == 6


def test_of_two_filled_in_the_last_counts_and_is_named():
    got = found("def f(x):\n    return 0", "def f(x):\n    return 2 * x")
    assert run(got) == 6
    assert got.notes == ["f is defined in 2 cells; the one in cell 2 counts"]


def test_the_cell_that_bears_the_id_counts_before_one_that_does_not():
    other = "def f(x):\n    return 0"
    right = "def f(x):\n    return 2 * x"
    assert run(found(right, other, ids={1: "twice"})) == 6
    assert run(found("# exercise: twice\n" + right, other)) == 6


def test_a_syntax_error_takes_no_other_cell_with_it():
    assert run(found("this is no Python", "def f(x):\n    return 2 * x", "def g(:")) == 6


def test_a_syntax_error_in_the_work_is_told():
    got = found("x = 1", "def f(x):\n    return 2 *")
    assert got.broken.startswith("SyntaxError in cell 2 at line 2")
    # also where the stub is still there
    assert found("def f(x):\n    return 2 *", "def f(x):\n    ...").broken


def test_errors_name_the_line_in_the_cell():
    got = found("import os", "\n\n# a comment\ndef f(x):\n    return 1 / 0")
    with pytest.raises(ZeroDivisionError) as error:
        run(got)
    last = error.traceback[-1]
    assert (str(last.path), last.lineno + 1) == ("cell 2", 5)


def test_a_lambda_and_a_class_are_work():
    assert run(found("f = lambda x: 2 * x")) == 6
    assert run(found("class f:\n    def __new__(cls, x):\n        return 2 * x")) == 6


def test_helpers_are_in_the_source_that_is_looked_at():
    """So that what is forbidden can't hide in a helper."""
    got = found("def g(x):\n    return torch.softmax(x, 0)", "def f(x):\n    return g(x)")
    assert "softmax" in got.sources["f"]


def test_nothing_is_found_in_nothing():
    assert found("x = 1").missing == ["f"]
    assert found().missing == ["f"]


# Reading


def test_both_forms_of_a_source():
    for source in ("a = 1\nb = 2", ["a = 1\n", "b = 2"]):
        data = {"cells": [{"cell_type": "code", "source": source}], "nbformat": 4}
        assert submission.read("x.ipynb", json.dumps(data).encode())[0].source == "a = 1\nb = 2"


@pytest.mark.parametrize(
    "cell",
    [7, None, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 3, "metadata": []},
     {"cell_type": "code", "source": [1, None], "metadata": {"exercise": 3, "tags": "x"}}],
)  # fmt: skip
def test_a_cell_that_is_none_is_passed_over(cell):
    good = {"cell_type": "code", "source": "x = 1"}
    read = submission.read("x.ipynb", json.dumps({"cells": [cell, good]}).encode())
    assert read[-1].source == "x = 1" and read[-1].number == 2


def test_windows_wrote_it():
    data = json.dumps({"cells": [{"cell_type": "code", "source": "a = 1\r\nb = 2"}]}).encode()
    notebook = Notebook(submission.read("X.IPYNB", b"\xef\xbb\xbf" + data))
    assert len(notebook.statements) == 2


def test_what_only_ipython_understands_is_left_out():
    source = "%matplotlib inline\nif x:\n    !ls\nx?\ny = 5 % 3"
    assert plain_python(source) == "pass\nif x:\n    pass\npass\ny = 5 % 3"
    assert plain_python("%%bash\nrm -rf /") == ""
    assert plain_python("%%time\nx = 1") == "pass\nx = 1"


SCRIPTS = {
    "nbconvert": "#!/usr/bin/env python\n# coding: utf-8\n\n# # Title\n\n# In[1]:\n\n\nimport math\n\n\n# In[ ]:\n\n\n"
    "# exercise: twice\ndef f(x):\n    y = x\n\n    return 2 * y\n\n\n# ### Exercise 1.1: Words\n\n# In words.\n",
    "percent": "# %% [markdown]\n# # Title\n\n# %%\nimport math\n\n# %%\n# exercise: twice\ndef f(x):\n    return 2 * x"
    "\n\n# %% [markdown]\n# ### Exercise 1.1: Words\n#\n# In words.\n",
    "plain": "import math\n\n\ndef f(x):\n    return 2 * x\n",
}  # fmt: skip


@pytest.mark.parametrize("form", SCRIPTS)
def test_scripts(form):
    read = submission.read("x.py", SCRIPTS[form].encode())
    assert run(work(twice, Notebook(read), NOTHING)) == 6
    if form != "plain":
        assert "In words." in "\n".join(c.source for c in read if c.kind == "markdown")


# Words


def words(*sources, ids=None, tags=()):
    made = cells(*sources, ids=ids, kind="markdown")
    for cell in made:
        cell.tags = list(tags)
    return written_answer("why", "1.4", made)


def test_words_are_found_by_the_mark_by_metadata_and_by_the_heading():
    assert words("# A", "<!-- exercise: why -->\n\nBecause.", "## B") == "Because."
    assert words("# A", "Because.", "## B", ids={2: "why"}, tags=["stub"]) == "Because."
    assert (
        words("### Exercise 1.4: Why\n\n*1 point*", "Because.", "And so.", "## B", "no")
        == "Because.\n\nAnd so."
    )


def test_no_words_are_no_answer():
    assert words("<!-- exercise: why -->\n\n*Write your answer here.*") == ""
    assert words("# A") == ""
    assert words("### Exercise 1.4: Why", "<details>\n<summary>Hint</summary>") == ""


def test_words_may_go_on_in_the_next_cell():
    assert words("<!-- exercise: why -->\n\nOne.", "Two.", "## B") == "One.\n\nTwo."
