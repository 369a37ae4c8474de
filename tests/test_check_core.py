"""The core of the checks: whatever a student does, the answer is a report, and it says what happened."""

import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from torch import nn

from course import ROOT
from lib import checks
from lib.checks import exercise, exercises, written
from lib.checks._bug import exposes
from lib.checks._compare import resemblance, same, shown
from lib.checks._data import NotData, Unfinished, copied
from lib.checks._report import BLANK, BROKEN, FAILED, PASSED
from lib.checks._source import blanks, forbidden, is_empty, parameters


@exercise(chapter=1, points=2, minutes=5)
def double(t):
    t.step("two numbers")
    x = torch.tensor([1.0, -3.0], dtype=torch.float64)
    t.close(t.student(x), 2 * x, "the double", {"that is the square": x**2})
    t.step("many numbers")
    x = t.normal(3, 4)
    t.close(t.student(x), 2 * x, "the double")


def run(function, check=double, seed=7):
    return check.report(function, seed=seed)


def failed(function, *parts, check=double):
    report = run(function, check)
    assert report.status == FAILED, report.text()
    for part in parts:
        assert part in report.text(), report.text()
    return report


def test_a_right_one_passes_and_says_the_same_every_time():
    texts = {double.report(lambda x: x + x).text() for _ in range(5)}
    assert texts == {"double: passed, 2 of 2 points\n  ok     two numbers\n  ok     many numbers"}


def test_a_failure_names_what_was_tried_what_came_and_what_was_expected():
    def double(x):
        return x**2

    # fmt: off
    failed(double, "wrong  two numbers", "double(x = (2,) float64: [1, -3])", "came:     (2,) float64: [1, 9]",
           "the double: (2,) float64: [2, -6]", "first at [0]: 1 came, 2 expected; 2 of 2 numbers differ, by up to 15",
           "likely:   that is the square", "again:    check.double(double, seed=7)")
    # fmt: on


def test_the_seed_repeats_the_inputs_and_without_it_they_are_fresh():
    seen = []

    def spy(x):
        seen.append(x)
        return 2 * x

    for seed in (3, 3, None, None):
        double.report(spy, seed=seed)
    many = seen[1::2]
    assert torch.equal(many[0], many[1])
    assert not torch.equal(many[2], many[3])


def test_nobodys_random_numbers_are_disturbed():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    double.report(lambda x: 2 * x + 0 * torch.rand(()))
    assert torch.equal(before, torch.get_rng_state())


# Stubs


def test_stubs_are_not_attempted_yet():
    def dots(x):
        return ...

    def inside(x):
        y = ...
        return y * 2

    def raising(x):
        """Doubles."""
        raise NotImplementedError

    def nothing(x):
        pass

    for stub in (dots, inside, raising, nothing):
        report = run(stub)
        assert report.status == BLANK and report.points == 0
        assert "not attempted yet" in report.text()
    assert "still to fill in: y = ..." in run(inside).text()


def test_without_a_source_a_stub_is_known_by_what_it_does():
    world = {}
    exec("def dots(x): return ...\ndef inside(x):\n  y = ...\n  return y * 2", world)
    assert run(world["dots"]).status == run(world["inside"]).status == BLANK


def test_an_index_is_no_blank():
    def last(x):
        return 2 * x[..., :]

    assert run(last).status == PASSED


def test_a_missing_return_is_no_stub():
    def forgets(x):
        x * 2

    failed(forgets, "is the `return` line missing?")


# Whatever goes wrong


def test_an_error_is_told_with_its_line():
    def broken(x):
        y = x[5]  # there are two
        return y

    failed(broken, "IndexError", "y = x[5]  # there are two")


@pytest.mark.parametrize("error", [SystemExit, RecursionError, AssertionError, GeneratorExit])
def test_nothing_is_raised_into_the_readers_face(error, capsys):
    def raising(x):
        raise error("no")

    double(raising)
    assert error.__name__ in capsys.readouterr().out


def test_the_readers_own_interruption_goes_through():
    def slow(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(slow)


def test_a_mistake_of_the_check_is_ours():
    @exercise(chapter=1, points=1, minutes=1)
    def bad(t):
        t.step("a step")
        raise KeyError("oops")

    report = run(lambda x: x, bad)
    assert report.status == BROKEN and report.points == 0
    assert "our mistake, not yours" in report.text() and "seed=7" in report.text()


@pytest.mark.parametrize("things", [(), (torch.ones(2),), (abs, abs), (None,)])
def test_a_call_with_the_wrong_things(things):
    report = double.report(*things)
    assert report.status == FAILED and "check.double(double)" in report.text()


@pytest.mark.parametrize(
    "value, part",
    [
        (lambda x: (2 * x).float(), "numbers of float32"),
        (lambda x: (2 * x)[None], "the shape (1, 2)"),
        (lambda x: (2 * x).tolist(), "came:     [2, -6]"),
        (lambda x: "six", "'six'"),
        (lambda x: object(), "a object"),
        (lambda x: x * float("nan"), "nan"),
        (lambda x: {2: x}, "{2: (2,)"),
        (lambda x: (2 * x).to_sparse(), "sparse"),
    ],
)
def test_results_of_the_wrong_kind(value, part):
    failed(value, part)


def test_what_is_right_in_another_form_is_right():
    for value in (
        lambda x: (2 * x).numpy(),
        lambda x: nn.Parameter(2 * x),
        lambda x: torch.stack([x, x], -1).sum(-1).requires_grad_(),
    ):
        assert run(value).status == PASSED


def test_arguments_are_copies():
    def greedy(x):
        x *= 2
        return x

    assert run(greedy).status == PASSED


# Forbidden


@exercise(chapter=1, points=1, minutes=1, forbids=["softmax", "lib.normalise.by_sum"])
def soft(t):
    t.step("softmax")
    x = t.normal(3, 4)
    t.close(t.student(x), x.softmax(-1))


def test_forbidden_names_are_found_in_the_source_and_behind_it():
    from torch.nn.functional import softmax as easy

    from lib import normalise

    hidden = getattr(torch, "soft" + "max")

    def direct(x):
        return x.softmax(-1)

    def helper(x):
        return getattr(x, "soft" + "max")(-1)

    def layer(x):
        return nn.Softmax(-1)(x)

    def by_module(x):
        return normalise.by_sum(x.exp())

    globals().update(easy_one=easy, normalise=normalise)

    def alias(x):
        return easy_one(x, -1)  # noqa: F821

    failed(direct, "a use of `softmax`, in the line: return x.softmax(-1)", check=soft)
    for other in (helper, layer, alias, lambda x: hidden(x, -1)):
        failed(other, "a use of `softmax`", check=soft)
    failed(by_module, "a use of `lib.normalise.by_sum`", check=soft)


def test_a_function_of_ones_own_may_bear_the_name():
    source = "def softmax(x):\n    return x.exp() / x.exp().sum(-1, keepdim=True)\ndef f(x):\n    return softmax(x)"
    assert forbidden(source, ("softmax",)) is None
    assert forbidden("import torch\ntorch.softmax(x, -1)", ("softmax",))[0] == "softmax"


def test_an_import_is_forbidden_where_a_line_uses_it():
    for source in (
        "from torch import softmax as s\ns(x, -1)",
        "from torch import softmax\nsoftmax(x, -1)",
    ):
        assert forbidden(source, ("softmax",)) == ("softmax", source.splitlines()[0])
    for source in ("from torch import softmax as s", "from torch import softmax\nx.exp()"):
        assert forbidden(source, ("softmax",)) is None


def test_sources_are_read():
    assert blanks("x[..., 0] = ...") == ["x[..., 0] = ..."]
    assert blanks("def f(x: tuple[int, ...]): return x[..., 0]") == []
    assert blanks("no python") == blanks(None) == []
    assert is_empty("def f():\n    'doc'\n    pass") and not is_empty("def f():\n    return 1")
    assert parameters("def f(a, b=1, *, c): ...", "f") == ["a", "b"]
    cls = "class M(nn.Module):\n    def __init__(self, d, heads):\n        pass"
    assert parameters(cls, "M") == ["d", "heads"]


# Data


def test_data_is_copied_and_nothing_else():
    x = torch.ones(2, requires_grad=True)
    got = copied({"a": [x, (1, 2.5, "w", None, True, torch.float32)]})
    assert not got["a"][0].requires_grad and got["a"][0] is not x
    assert got["a"][1] == (1, 2.5, "w", None, True, torch.float32)
    assert copied(np.float64(2.0)) == 2.0
    assert torch.equal(copied(np.arange(3)), torch.arange(3))
    for bad in (
        object(),
        {(1, 2): 3},
        {1.5: 2},
        {1, 2},
        lambda: 1,
        torch.ones(2, dtype=torch.cfloat),
    ):
        with pytest.raises(NotData):
            copied(bad)
    with pytest.raises(Unfinished):
        copied([1, [...]])
    loop: list = []
    loop.append(loop)
    with pytest.raises(NotData):
        copied(loop)


# Comparisons


def test_resemblances_are_recognised():
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert "transpose" in resemblance(x.mT, x)
    assert "not the shape" in resemblance(x.reshape(4, 3), x)
    assert "sign" in resemblance(-x, x)
    assert "0.5 times" in resemblance(x / 2, x)
    assert "wrong places" in resemblance(x.flip(0), x)
    assert "NaN" in resemblance(x.log(), x)
    assert resemblance(x + 1, x) is None


def test_sameness():
    x = torch.randn(50, dtype=torch.float64)
    assert same(x + 1e-9, x) and not same(x + 1e-4, x)
    assert same(x.float(), x) and not same(x[:-1], x)
    inf = torch.tensor([float("inf"), 1.0])
    assert same(inf, inf) and not same(-inf, inf)
    assert same([1, "a", 2.0], (1, "a", 2.0 + 1e-9)) and not same([1, "a"], [1, "b"])
    assert not same(True, 1) and not same(1, True) and same(torch.tensor(3), 3)
    assert same(torch.tensor([0, 1]), torch.tensor([0, 1], dtype=torch.int32))
    assert not same(torch.tensor([True]), torch.tensor([1]))
    assert not same(torch.tensor([1]), torch.tensor([True]))
    assert not same(torch.tensor([1.5]), torch.tensor([1]))
    assert shown(torch.ones(100)) == "a tensor (100,) float32"


# Modules and gradients


class Right(nn.Module):
    def __init__(self, d, out=3):
        super().__init__()
        self.map = nn.Linear(d, out)

    def forward(self, x):
        return self.map(x).tanh()


class NoTanh(Right):
    def forward(self, x):
        return self.map(x)


class OtherNames(nn.Module):
    def __init__(self, d, out=3):
        super().__init__()
        self.linear = nn.Linear(d, out)


class Detached(Right):
    def forward(self, x):
        return super().forward(x.detach())


@exercise(chapter=1, points=1, minutes=1)
def layer(t):
    t.step("a map, then tanh")
    x = t.normal(2, 4)
    state = {"map.weight": t.normal(5, 4), "map.bias": t.normal(5)}
    own = t.module_of(Right, 4, out=5, inputs=(x,), state=state)
    ran = t.module(4, out=5, inputs=(x,), state=state)
    t.equal(sorted(ran.state), sorted(state), "the names of the state")
    t.close(ran.output, own.output, "the output", {"tanh is missing": own.output.atanh()})
    t.step("gradients")
    t.close(ran.gradients["map.weight"], own.gradients["map.weight"], "the gradient of map.weight")
    t.true(ran.input_gradients[0] is not None, "no gradient", "a gradient of the input")
    t.close(ran.input_gradients[0], own.input_gradients[0], "the gradient of the input")


def test_a_module_is_built_loaded_run_and_derived():
    assert layer.report(Right).status == PASSED
    failed(NoTanh, "tanh is missing", check=layer)
    failed(OtherNames, "Missing key(s) in state_dict", check=layer)
    failed(Detached, "no gradient", check=layer)


def test_gradients():
    @exercise(chapter=1, points=1, minutes=1)
    def cube(t):
        t.step("x³ and 3x²")
        x = t.normal(4)
        output, (gradient,) = t.gradients(x)
        expected, (slope,) = t.gradients_of(lambda x: x**3, x)
        t.close(output, expected)
        t.close(gradient, slope, "the gradient")

    assert cube.report(lambda x: x * x * x).status == PASSED
    failed(lambda x: x.detach() ** 2 * x, "the gradient", check=cube)


def test_an_answer_of_another_form_is_a_failure_and_no_mistake_of_the_check():
    """In grading the answer comes from the student's process, which may send anything."""

    class Forger:
        def __init__(self, forged):
            self.sources, self.forged = {}, forged

        def ask(self, request):
            return {"kind": "value", "value": self.forged}

    wrong = {"output": 1, "state": 2, "gradients": 3, "input_gradients": 4}
    for forged in (None, 3, {}, wrong):
        report = layer.run(Forger(forged), 0)
        assert report.status == FAILED and "parts output, state" in report.text()


def test_no_code_runs_on_inputs_before_their_size_is_known():
    ran = []

    @exercise(chapter=1, points=1, minutes=1)
    def expose(t):
        exposes(t, ran.append, ran.append, ("x",), largest=2, valid=lambda x: x.shape and None)

    failed(lambda: torch.ones(3), "at most 2 in all", check=expose)
    failed(lambda: "word", "as the exercise describes", check=expose)
    assert ran == []


def test_find_the_bug():
    @exercise(chapter=1, points=1, minutes=1)
    def expose(t):
        blind = {"0 is its own square": lambda x: not x.any()}
        exposes(t, lambda x: 2 * x, lambda x: x**2, ("x",), largest=2, blind=blind)

    assert expose.report(lambda: torch.ones(1)).status == PASSED
    failed(lambda: torch.zeros(1), "0 is its own square", check=expose)
    failed(lambda: torch.ones(9), "at most 2 in all", check=expose)
    failed(lambda: (torch.ones(1), 2), "one value, x", check=expose)
    failed(lambda: {"x": 1}, "the right code runs", check=expose)


# The course's list


def test_ids_are_names_and_in_nobodys_way():
    for name, one in exercises().items():
        assert name.isidentifier() and name not in checks.__all__
        assert getattr(checks, name) is one and name in dir(checks)
        if isinstance(one, checks.Exercise):
            assert f"check.{name}(" in repr(one) and inspect.isfunction(one.function)
    with pytest.raises(AttributeError, match="no exercise 'nonsense'"):
        _ = checks.nonsense


def test_a_rubric_must_add_up():
    assert written("why", 1, 3, 5, ["1: one", "2: two"]).rubric == ("1: one", "2: two")
    with pytest.raises(ValueError, match="rubric of why"):
        written("why", 1, 3, 5, ["1: one", "1: two"])


def test_a_question_in_words_has_no_check(capsys):
    checks.equivariant_figure(3)
    assert "a person marks it" in capsys.readouterr().out


def test_in_a_notebook_it_is_shown_as_text_and_html():
    import nbformat

    from course.run import execute

    code = "from lib import checks as check\ncheck.all_scores(lambda query, key: query @ key.mT)"
    cells = [nbformat.v4.new_code_cell(line) for line in ("f = abs", code)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    execute(notebook, ROOT)
    (output,) = notebook.cells[1].outputs
    assert "the division by √d is missing" in output.data["text/plain"]
    assert "<strong>likely</strong>" in output.data["text/html"]


def test_at_a_bare_prompt_it_is_printed_and_needs_torch_alone():
    code = """
        import sys
        for name in ("IPython", "matplotlib", "sklearn", "skimage"):
            sys.modules[name] = None  # as if not installed
        from lib import checks as check
        exec("def all_scores(query, key): return query @ key.mT")
        check.all_scores(all_scores)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "the division by √d is missing" in done.stdout
