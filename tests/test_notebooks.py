"""Text and notebook are one: derived, fresh, stable, and nothing in them is left unproven without a reason."""

import copy

import nbformat
import pytest

from course import notebooks
from course.compare import Tolerance
from course.figures import VIEW, with_stable_ids
from course.first_cell import TAG

TEXTS = notebooks.chapters()
OPT_OUTS_ALLOWED = (
    0  # cells whose outputs nobody compares; raising this needs a reason beside the cell
)

chapter = pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.stem)


@pytest.fixture
def read():
    return lambda text: nbformat.read(notebooks.notebook_of(text), as_version=4)


def test_there_are_chapters_and_no_orphans():
    assert TEXTS
    assert {notebooks.notebook_of(text) for text in TEXTS} == set(
        notebooks.CHAPTERS.glob("*.ipynb")
    )


@chapter
def test_the_notebook_is_made_from_the_text(text):
    assert notebooks.differences(text, notebooks.notebook_of(text)) == []


@chapter
def test_outputs_are_counted_or_excused(text, read):
    found = notebooks.opt_outs(read(text))
    assert all(reason for _, reason in found), f"cells without a reason: {found}"


def test_few_cells_opt_out(read):
    assert sum(len(notebooks.opt_outs(read(text))) for text in TEXTS) <= OPT_OUTS_ALLOWED


@chapter
def test_every_figure_says_what_it_shows(text, read):
    for number, cell in enumerate(read(text).cells):
        for output in cell.get("outputs", []):
            if "image/png" not in output.get("data", {}):
                continue
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            if VIEW in output.data:  # an interactive figure brings its own words
                alt = output.data["text/plain"]
            assert len(alt.split()) >= 8, f"cell {number}: alt text {alt!r}"


@chapter
def test_outputs_are_clean(text, read):
    """No error, no warning, no address of an object, no time of execution."""
    for number, cell in enumerate(read(text).cells):
        assert "execution" not in cell.metadata, f"cell {number}"
        for output in cell.get("outputs", []):
            assert output.output_type != "error", f"cell {number} stores an error"
            assert output.get("name") != "stderr", f"cell {number} stores {output.text!r}"
            shown = output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            assert " at 0x" not in shown, f"cell {number} prints an address: {shown!r}"


@chapter
def test_cells_are_short(text, read):
    """One idea a cell; a tolerance that can be read."""
    for number, cell in enumerate(read(text).cells):
        if cell.cell_type == "code" and TAG not in cell.metadata.get("tags", []):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            assert len(lines) <= 18, f"cell {number} has {len(lines)} lines"
            assert max(map(len, lines)) <= 88, f"cell {number} has a line of over 88 characters"
            Tolerance.from_tags(cell.metadata.get("tags", []))


@chapter
def test_the_first_cell_finds_the_course(text, read):
    first = next(cell for cell in read(text).cells if cell.cell_type == "code")
    assert TAG in first.metadata.get("tags", [])


# The tests above, tested: a text and its notebook, then one difference at a time.

TEXT = """\
---
kernelspec:
  display_name: Python 3 (ipykernel)
  language: python
  name: python3
---

# A chapter

```{code-cell} ipython3
:tags: [first-cell]

# written by `make run`
```

```{code-cell} ipython3
x = 1
print(x)
```

```{code-cell} ipython3
x = 1
print(x)
```
"""


@pytest.fixture
def pair(tmp_path):
    """A text and the notebook made from it, as if it had been executed."""
    text = tmp_path / "99_test.md"
    text.write_text(TEXT, "utf8")
    notebook = notebooks.derive(text)
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        cell.execution_count = count
    notebooks.write(notebooks.clean(notebook), notebooks.notebook_of(text))
    return text, notebook


def test_a_fresh_pair_has_no_differences(pair):
    text, _ = pair
    assert notebooks.differences(text, notebooks.notebook_of(text)) == []


def test_ids_are_unique_and_survive_an_insertion(pair):
    text, notebook = pair
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    text.write_text(TEXT.replace("# A chapter", "# A chapter\n\n+++\n\nA new cell."), "utf8")
    assert [i for i in (c.id for c in notebooks.derive(text).cells) if i in ids] == ids


def test_the_first_cell_is_filled_in(pair):
    _, notebook = pair
    assert "sys.path.insert" in notebook.cells[1].source
    compile(notebook.cells[1].source, "first cell", "exec")


def spoil_source(notebook):
    notebook.cells[2].source += " "


def spoil_metadata(notebook):
    notebook.cells[2].metadata["tags"] = ["nbval-skip"]


def spoil_prose(notebook):
    notebook.cells[0].source = "# Another chapter"


def drop_cell(notebook):
    del notebook.cells[-1]


def run_out_of_order(notebook):
    notebook.cells[2].execution_count, notebook.cells[3].execution_count = 3, 2


def other_kernel(notebook):
    notebook.metadata["kernelspec"]["name"] = "conda-env"


@pytest.mark.parametrize(
    "spoil",
    [spoil_source, spoil_metadata, spoil_prose, drop_cell, run_out_of_order, other_kernel],
    ids=lambda spoil: spoil.__name__,
)
def test_a_difference_is_seen(pair, spoil):
    text, notebook = pair
    spoilt = copy.deepcopy(notebook)
    spoil(spoilt)
    nbformat.write(spoilt, notebooks.notebook_of(text))
    assert notebooks.differences(text, notebooks.notebook_of(text))


def test_a_missing_notebook_is_a_difference(pair):
    text, _ = pair
    notebooks.notebook_of(text).unlink()
    assert "make run CH=99" in notebooks.differences(text, notebooks.notebook_of(text))[0]


@pytest.mark.parametrize("tag", sorted(notebooks.NBVAL_TAGS))
def test_opt_outs_are_counted_by_tag(pair, tag):
    _, notebook = pair
    notebook.cells[2].metadata = nbformat.from_dict({"tags": [tag]})
    notebook.cells[3].metadata = nbformat.from_dict({"tags": [tag], "reason": "a clock"})
    assert notebooks.opt_outs(notebook) == [(2, ""), (3, "a clock")]


def test_opt_outs_are_counted_by_comment(pair):
    _, notebook = pair
    notebook.cells[2].source = "# NBVAL_IGNORE_OUTPUT\nprint(x)"
    assert notebooks.opt_outs(notebook) == [(2, "")]


WIDGETS = "application/vnd.jupyter.widget-state+json"


def with_figures(first: str, second: str, layout: str):
    """A notebook that shows two figures, with ids as random as a kernel makes them."""
    view = lambda i: {"text/plain": "words", VIEW: {"model_id": i, "version_major": 2}}  # noqa: E731
    cells = [
        nbformat.v4.new_code_cell("x", outputs=[nbformat.v4.new_output("execute_result", view(i))])
        for i in (first, second)
    ]
    model = lambda state: {"model_module": "anywidget", "state": state}  # noqa: E731
    state = {
        layout: model({}),
        second: model({"n": 2}),
        "0" * 8: model({"nobody": "shows it"}),
        first: model({"n": 1, "layout": f"IPY_MODEL_{layout}"}),
    }
    return nbformat.v4.new_notebook(
        cells=cells, metadata={"widgets": {WIDGETS: {"state": nbformat.from_dict(state)}}}
    )


def test_ids_of_figures_are_stable():
    one = with_stable_ids(with_figures("aaaa1111", "bbbb2222", "cccc3333"))
    two = with_stable_ids(with_figures("dddd4444", "eeee5555", "ffff6666"))
    for a, b in zip(one.cells, two.cells, strict=True):
        assert a.outputs == b.outputs
    assert nbformat.from_dict(one.metadata) == two.metadata
    state = one.metadata.widgets[WIDGETS].state
    ids = [cell.outputs[0].data[VIEW].model_id for cell in one.cells]
    assert [state[i].state.n for i in ids] == [1, 2]
    assert state[ids[0]].state.layout.removeprefix("IPY_MODEL_") in state
    assert len(state) == 3  # what nobody shows is gone


def test_older_code_of_a_figure_is_seen():
    from course import figures
    from lib.widgets import _base

    state = {"_anywidget_id": "lib.widgets.softmax.SoftmaxBars", "_esm": _base.module("softmax")}
    notebook = with_figures("a" * 8, "b" * 8, "c" * 8)
    notebook.metadata.widgets[WIDGETS].state["a" * 8]["state"] = nbformat.from_dict(state)
    assert figures.stale(notebook) == []
    notebook.metadata.widgets[WIDGETS].state["a" * 8]["state"]["_esm"] += " "
    assert figures.stale(notebook) == ["lib.widgets.softmax.SoftmaxBars"]
    assert figures.refresh(notebook) and figures.stale(notebook) == []


def test_streams_are_joined_only_with_neighbours_of_their_kind():
    out = lambda name, text: nbformat.v4.new_output("stream", name=name, text=text)  # noqa: E731
    joined = notebooks.joined_streams(
        [out("stdout", "a"), out("stdout", "b"), out("stderr", "c"), out("stdout", "d")]
    )
    assert [(o.name, o.text) for o in joined] == [
        ("stdout", "ab"),
        ("stderr", "c"),
        ("stdout", "d"),
    ]


def test_unknown_chapter_is_named():
    with pytest.raises(SystemExit, match=r"no chapter 77; there are: "):
        notebooks.chapters(["77"])
