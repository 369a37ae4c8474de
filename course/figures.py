"""The interactive figures as a notebook stores them: stable ids, and code that is never older than `lib/widgets`.

A widget's state lies in the notebook's metadata, with the code that a browser runs. The code is no result of a run, so
it can be brought up to date without one.
"""

import json
import re

import nbformat
from nbformat import NotebookNode

STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"


def stored(widgets: dict) -> dict[str, dict]:
    """Model id to model, from what `metadata.widgets` holds; empty when there is none."""
    return widgets.get(STATE, {}).get("state", {})


def shown(notebook: NotebookNode) -> list[dict]:
    """The views in a notebook's outputs, in order: each holds a `model_id`."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[VIEW] for output in outputs if VIEW in output.get("data", {})]


def with_stable_ids(notebook: NotebookNode) -> NotebookNode:
    """Widgets get random ids when made. Here they are numbered: first those shown, in order, then their parts."""
    models = stored(notebook.metadata.get("widgets", {}))
    if not models:
        return notebook
    order = list(dict.fromkeys(view["model_id"] for view in shown(notebook)))
    for model_id in order:  # grows while it is walked through
        parts = re.findall(r'"IPY_MODEL_(\w+)"', json.dumps(models[model_id], sort_keys=True))
        order += [part for part in dict.fromkeys(parts) if part not in order]
    names = {model_id: f"{number:032x}" for number, model_id in enumerate(order, start=1)}
    text = json.dumps({model_id: models[model_id] for model_id in order})
    for old, new in names.items():
        text = text.replace(old, new)
    notebook.metadata["widgets"][STATE]["state"] = nbformat.from_dict(json.loads(text))
    for view in shown(notebook):
        view["model_id"] = names[view["model_id"]]
    return notebook


def present_code(state: dict) -> str:
    """The code that `lib/widgets` has for a stored figure now."""
    from lib.widgets import _base  # brings torch, which building the site does without

    return _base.module(state["_anywidget_id"].split(".")[-2])  # lib.widgets.NAME.Class


def stale(notebook: NotebookNode) -> list[str]:
    """The figures whose stored code is not the present one."""
    models = stored(notebook.metadata.get("widgets", {})).values()
    states = [model["state"] for model in models if "_esm" in model["state"]]
    return [s["_anywidget_id"] for s in states if s["_esm"] != present_code(s)]


def refresh(notebook: NotebookNode) -> bool:
    """Put the present code into the stored figures; returns whether anything changed."""
    changed = bool(stale(notebook))
    for model in stored(notebook.metadata.get("widgets", {})).values():
        if "_esm" in model["state"]:
            model["state"]["_esm"] = present_code(model["state"])
    return changed


def refresh_all() -> int:
    """`python -m course figures`: every chapter's figures with the present code; nothing is executed."""
    from course.notebooks import chapters, notebook_of, write

    for text in chapters():
        notebook = nbformat.read(notebook_of(text), as_version=4)
        if refresh(notebook):
            write(notebook, notebook_of(text))
            print(f"{notebook_of(text).name}: new code")
    return 0
