"""Execute chapters: derive each from its text, run it in a fresh kernel, clean it, write it."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets import Unicode

from course.memory import peak_memory
from course.notebooks import chapters, clean, derive, notebook_of, write

CELL_TIMEOUT = 600  # seconds


@dataclass
class Result:
    name: str
    seconds: float
    memory: int | None  # peak, in bytes
    problem: str = ""


class OneKernel(KernelSpecManager):
    """Knows one kernel: that of a given Python. A "python3" installed by somebody else is never taken."""

    python = Unicode(sys.executable)

    def get_kernel_spec(self, kernel_name):
        argv = [self.python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def execute(
    notebook: nbformat.NotebookNode,
    folder: Path,
    report: Callable[[int, int], None] = lambda done, total: None,
    python: Path | str = sys.executable,
) -> int | None:
    """Run every cell in a new kernel that starts in `folder`; returns the kernel's peak memory in bytes."""
    kernel = AsyncKernelManager(kernel_spec_manager=OneKernel(python=str(python)))
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=CELL_TIMEOUT,
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=True,
        record_timing=False,
        extra_arguments=["--log-level=40"],  # or each start prints a warning about the loopback
    )
    # progress bars are for people: one that reached an output would differ in every run
    with client.setup_kernel(env={**os.environ, "COURSE_PROGRESS": "off"}):
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
            report(number + 1, len(notebook.cells))
        client.set_widgets_metadata()
        return peak_memory(kernel.provisioner.pid)


def run_chapter(text: Path, report: Callable[[int, int], None]) -> Result:
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
    """Run the chapters asked for, or all; returns the exit code. Progress goes to stderr, the table to stdout."""
    results = []
    for text in chapters(numbers):
        results.append(run_chapter(text, progress(text.stem)))
    print(table(results))
    for result in results:
        if result.problem:
            print(f"\n{result.name} failed; its notebook was left alone.\n{result.problem}")
    return int(any(result.problem for result in results))


def progress(name: str) -> Callable[[int, int], None]:
    """One line a chapter: rewritten cell by cell on a terminal, written once elsewhere."""
    if not sys.stderr.isatty():
        print(f"{name}: running", file=sys.stderr, flush=True)
        return lambda done, total: None
    return lambda done, total: print(
        f"\r{name}: cell {done} of {total}",
        end="\n" if done == total else "",
        file=sys.stderr,
        flush=True,
    )


def table(results: list[Result]) -> str:
    width = max((len(r.name) for r in results), default=0)
    lines = [f"{'chapter':{width}}  seconds  peak MB"]
    for r in results:
        memory = f"{r.memory / 1e6:7.0f}" if r.memory else "      –"
        lines.append(
            f"{r.name:{width}}  {r.seconds:7.1f}  {memory}" + ("  FAILED" if r.problem else "")
        )
    return "\n".join(lines)
