"""Execute chapters: derive each from its text, run it in a fresh kernel, clean it, write it."""

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from course.memory import peak_memory
from course.notebooks import chapters, clean, derive, notebook_of, write

CELL_TIMEOUT = 600  # seconds


@dataclass
class Result:
    name: str
    seconds: float
    memory: int | None  # peak, in bytes
    problem: str = ""


def execute(notebook: nbformat.NotebookNode, folder: Path, report=lambda done, total: None):
    """Run every cell in a new kernel that starts in `folder`; returns the kernel's peak memory in bytes."""
    # frozen modules only cause the debugger to print a warning at kernel start
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=True,
        record_timing=False,
    )
    with client.setup_kernel(env={**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}):
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
            report(number + 1, len(notebook.cells))
        client.set_widgets_metadata()
        return peak_memory(client.km.provisioner.pid)


def run_chapter(text: Path, report=lambda done, total: None) -> Result:
    """Derive, execute, clean and write one chapter. When a cell fails, the stored notebook stays as it was."""
    notebook, memory, problem = derive(text), None, ""
    start = time.perf_counter()
    try:
        memory = execute(notebook, text.parent, report)
        write(clean(notebook), notebook_of(text))
    except CellExecutionError as error:
        problem = str(error)
    return Result(text.stem, time.perf_counter() - start, memory, problem)


def run_chapters(numbers: list[str]) -> int:
    texts, results = chapters(numbers), []
    live = sys.stderr.isatty()
    for text in texts:
        def report(done, total, name=text.stem):
            print(f"\r{name}: cell {done} of {total} ", end="", file=sys.stderr, flush=True)

        print(f"{text.stem}: running", file=sys.stderr, flush=True)
        results.append(run_chapter(text, report if live else lambda done, total: None))
        if live:
            print(file=sys.stderr)
    print(table(results))
    for result in results:
        if result.problem:
            print(f"\n{result.name} failed; its notebook was left alone.\n{result.problem}")
    return int(any(result.problem for result in results))


def table(results: list[Result]) -> str:
    width = max((len(r.name) for r in results), default=0)
    lines = [f"{'chapter':{width}}  seconds  peak MB"]
    for r in results:
        memory = f"{r.memory / 1e6:7.0f}" if r.memory else "      –"
        lines.append(f"{r.name:{width}}  {r.seconds:7.1f}  {memory}" + ("  FAILED" if r.problem else ""))
    return "\n".join(lines)
