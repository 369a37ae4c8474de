"""A pytest plugin: what nbval checks, made strict where it is lax and tolerant where exactness means nothing.

nbval runs each notebook once and compares every output with the stored one. On top of that, from the same run:
text and numbers follow `course.compare` instead of plain equality; pictures, which nbval skips, must look the
same; a code cell that was never run fails; and each notebook's peak memory is checked at its end.
"""

import base64
import copy
import os

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from course.compare import Picture, Text, Tolerance, is_blank
from course.memory import peak_memory

MEMORY_LIMIT = 1.5e9  # bytes; a small Binder machine has 2 GB for everything
PICTURES = ("image/png", "image/jpeg")


class Cell(IPyNbCell):
    """One code cell: run, then compared by the rules of the course."""

    output_timeout = (
        60  # seconds to wait for an output; nbval's own 5 are too few on a busy machine
    )

    def setup(self):
        super().setup()
        self.output_timeout = type(self).output_timeout  # nbval sets 5 on the instance
        self.tolerance = Tolerance.from_tags(self.cell.metadata.get("tags", []))

    def runtest(self):
        if self.cell.execution_count is None and not self.options["skip"]:
            self.raise_cell_error("This cell was never run: make run")
        self.parent.cells_run = True
        super().runtest()

    def sanitize(self, value):
        value = super().sanitize(value)
        if isinstance(value, str) and not isinstance(value, Picture):
            value = Text(value)
            value.tolerance = self.tolerance
        return value

    def compare_outputs(self, test, ref, skip_compare=None):
        skipped = tuple(key for key in self.parent.skip_compare if key not in PICTURES)
        test, ref = self.with_pictures(test), self.with_pictures(ref)
        for picture in pictures(ref):
            if is_blank(base64.b64decode(picture)):
                self.comparison_traceback = ["the stored picture is blank"]
                return False
        return super().compare_outputs(test, ref, skipped)

    def with_pictures(self, outputs):
        """The outputs with every picture as a `Picture`, which knows when it equals another."""
        outputs = copy.deepcopy(outputs)
        for output in outputs:
            for kind in PICTURES:
                if kind in output.get("data", {}):
                    picture = Picture(output["data"][kind])
                    picture.tolerance = self.tolerance
                    output["data"][kind] = picture
        return outputs


def pictures(outputs) -> list[Picture]:
    return [
        value for o in outputs for value in o.get("data", {}).values() if isinstance(value, Picture)
    ]


class PeakMemory(pytest.Item):
    """After a notebook's last cell: how much memory its kernel took at most."""

    def runtest(self):
        if not self.parent.cells_run:
            pytest.skip("no cell of this notebook was run")
        used = peak_memory(self.parent.kernel.km.provisioner.pid)
        if used is None:
            pytest.skip("this system does not tell a process's peak memory")
        self.user_properties.append(("peak MB", round(used / 1e6)))
        if used > MEMORY_LIMIT:
            pytest.fail(
                f"{self.parent.name} took {used / 1e9:.2f} GB of memory; the limit is {MEMORY_LIMIT / 1e9} GB"
            )

    def reportinfo(self):
        return self.path, 0, f"{self.parent.name}::peak memory"


class Notebook(IPyNbFile):
    """A notebook: its cells in one kernel, then a look at what that kernel took."""

    cells_run = False

    def setup(self):
        os.environ["COURSE_PROGRESS"] = (
            "off"  # the kernel inherits it: no progress bar in an output
        )
        super().setup()

    def collect(self):
        cells = list(super().collect())
        for cell in cells:
            cell.__class__ = Cell  # nbval names its own class; ours only overrides methods
            yield cell
        if cells:
            yield PeakMemory.from_parent(self, name="peak memory")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    collected = yield
    for node in collected:
        if type(node) is IPyNbFile:
            node.__class__ = Notebook
    return collected
