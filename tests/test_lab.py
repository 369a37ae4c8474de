"""Every interactive figure in JupyterLab with a real kernel, both ways.

Python sets a trait and the browser computes what Python computes; a key or a click in the picture sets a trait in
Python. One server, one notebook and one kernel serve all figures. The network is cut: only this machine is asked.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

import lib.widgets
from course import ROOT

KINDS = [getattr(lib.widgets, name) for name in lib.widgets.__all__]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)

# Runs in the kernel, once: what a trait can be changed to, and whether the browser's numbers are torch's.
HELPERS = """
import json, torch, lib.widgets
from lib.widgets._base import Data, OneOf, Ranged, Switch

def state():
    kept = {k: v for k, v in figure.get_state().items() if not k.startswith("_") and k != "shown"}
    return {k: v for k, v in kept.items() if k not in ("layout", "tabbable", "tooltip")}

def changes():
    '''(trait, another value) for every trait whose kind says what it may be.'''
    for name, trait in figure.traits(sync=True).items():
        now = getattr(figure, name)
        if isinstance(trait, Ranged):
            yield name, trait.low if now == trait.high else trait.high
        elif isinstance(trait, OneOf):
            yield name, next(option for option in trait.options if option != now)
        elif isinstance(trait, Switch):
            yield name, not now

def agrees():
    '''Nothing, or the names of what the browser computed otherwise than torch does in this state.'''
    want, got = figure.compute(), figure.shown
    if set(want) != set(got):
        return sorted(set(want) ^ set(got))
    numbers = {name: torch.tensor(got[name], dtype=torch.float64) for name in got}
    return [name for name, value in want.items() if numbers[name].shape != value.shape
            or not torch.allclose(numbers[name], value.double(), rtol=1e-5, atol=1e-5)]
"""

RUN = """async ([code, index]) => {
  const notebook = jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = index;
  notebook.activeCell.model.sharedModel.setSource(code);
  await jupyterapp.commands.execute("notebook:run-cell");
  return notebook.widgets[index].model.outputs.toJSON();
}"""

HEARD = """async () => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const wait = (time) => new Promise((done) => setTimeout(done, time));
  let messages = 0;
  const heard = () => { messages += 1; };
  await wait(300);
  kernel.anyMessage.connect(heard);
  await wait(400);
  kernel.anyMessage.disconnect(heard);
  return messages;
}"""


class Lab:
    """A JupyterLab server on this machine, and a browser page on it."""

    def __init__(self, folder, browser):
        self.folder, self.browser, self.token = folder, browser, secrets.token_hex(16)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        root, settings = folder / "root", folder / "settings"
        notifications = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
        notifications.parent.mkdir(parents=True)
        notifications.write_text('{"fetchNews": "false", "checkForUpdates": false}')
        root.mkdir()
        options = {
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.port": self.port,
            "ServerApp.port_retries": 0,
            "ServerApp.root_dir": root,
            "ServerApp.open_browser": False,
            "ServerApp.allow_root": True,  # in a container the tests may well be root
            "IdentityProvider.token": self.token,
            "KernelManager.shutdown_wait_time": 1,
            "LabApp.expose_app_in_browser": True,  # `jupyterapp`: commands without hunting for menus
            "LabApp.extension_manager": "readonly",
            "LabApp.user_settings_dir": settings,
            "LabApp.workspaces_dir": folder / "workspaces",
        }
        places = {"JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"}
        self.log = (folder / "log").open("w")
        self.server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *(f"--{k}={v}" for k, v in options.items())],
            env={**os.environ, **{p: str(folder / p) for p in places}, "PYTHONPATH": str(ROOT)},
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,  # so that its kernels can be ended with it
        )
        self.root = root

    def wait(self, seconds=60):
        address = f"http://127.0.0.1:{self.port}/api?token={self.token}"
        for _ in range(seconds * 5):
            try:
                with urllib.request.urlopen(address, timeout=5):
                    return
            except OSError:
                assert self.server.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.2)
        pytest.fail(f"JupyterLab did not start: {(self.folder / 'log').read_text()}")

    def stop(self):
        self.server.terminate()  # it ends its kernels
        try:
            self.server.wait(15)
        except subprocess.TimeoutExpired:
            if os.name == "posix":
                os.killpg(self.server.pid, signal.SIGKILL)
            self.server.kill()
        self.log.close()

    def open(self, name, **context):
        """A page with one notebook; what it asked elsewhere for, and its errors, are in `complaints`."""
        page = self.browser.new_context(viewport={"width": 1300, "height": 1400}, **context)
        page = page.new_page()
        page.complaints = []

        def answer(route):
            if route.request.url.startswith((f"http://127.0.0.1:{self.port}/", "data:", "blob:")):
                route.continue_()
            else:
                page.complaints.append(f"asked for {route.request.url}")
                route.abort()

        page.route("**/*", answer)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(
            f"http://127.0.0.1:{self.port}/lab/workspaces/{name.split('.')[0]}/tree/{name}?token={self.token}"
        )
        page.wait_for_function("globalThis.jupyterapp?.shell.currentWidget?.content?.widgets")
        return page


class Notebook:
    """A notebook of two cells in JupyterLab: the first shows a figure, the second is for whatever is to be asked."""

    def __init__(self, page):
        self.page = page
        page.evaluate("jupyterapp.shell.currentWidget.sessionContext.ready")
        page.wait_for_function(
            "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'",
            timeout=60_000,
        )
        self.run(HELPERS)

    def run(self, code: str, cell: int = 1) -> str:
        outputs = self.page.evaluate(RUN, [code, cell])
        errors = ["\n".join(o["traceback"]) for o in outputs if o["output_type"] == "error"]
        assert not errors, errors[0]
        return "".join("".join(o.get("text", "")) for o in outputs)

    def ask(self, expression: str):
        return json.loads(self.run(f"print(json.dumps({expression}))"))

    def show(self, kind):
        """The figure, and its element in the page."""
        self.run(f"figure = lib.widgets.{kind.__name__}()\nfigure", cell=0)
        root = self.page.locator(".jp-Notebook section.figure")
        root.wait_for()
        self.until_agreed("when it was made")
        return root

    def until_agreed(self, when: str):
        """What the browser sends arrives between two cells: ask until it has."""
        for _ in range(40):
            if not (wrong := self.ask("agrees()")):
                return
            self.page.wait_for_timeout(100)
        pytest.fail(f"{when}, browser and torch differ in: {wrong}")

    def until_changed(self, expression: str, before):
        for _ in range(5):
            if (now := self.ask(expression)) != before:
                return now
            self.page.wait_for_timeout(100)
        return before


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    server = Lab(tmp_path_factory.mktemp("lab"), browser)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def notebook(lab):
    cells = [nbformat.v4.new_code_cell(), nbformat.v4.new_code_cell()]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    empty = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(empty, lab.root / "figures.ipynb")
    page = lab.open("figures.ipynb")
    yield Notebook(page)
    page.context.close()


@every_kind
def test_python_sets_and_the_picture_follows(notebook, kind):
    """Each trait in turn: the numbers of the picture, as it sends them back, are those of the new state."""
    root = notebook.show(kind)
    sentence = root.get_by_role("status").inner_text
    first, names = sentence(), notebook.ask("[name for name, _ in changes()]")
    assert names, "no trait to set"
    said = set()
    for name in names:
        notebook.run(f"setattr(figure, *next(c for c in changes() if c[0] == {name!r}))")
        notebook.until_agreed(f"after Python had set {name}")
        said.add(sentence())
    notebook.page.wait_for_timeout(250)  # the sentence follows a little later than the numbers
    assert {*said, sentence()} != {first}, "no trait changed what the picture says"


@every_kind
def test_a_key_or_a_click_in_the_picture_sets_a_trait_in_python(notebook, kind):
    root = notebook.show(kind)
    start = before = notebook.ask("state()")
    for kind_of_control in ("[tabindex='0']", "input[type=range]"):
        for control in root.locator(kind_of_control).all()[:1]:
            for key in ("ArrowLeft", "ArrowRight", "ArrowDown", "Space", "Enter"):
                control.press(key)
                if (after := notebook.until_changed("state()", before)) != before:
                    break
            assert after != before, f"no key sets a trait: {control.evaluate('e => e.outerHTML')}"
            before = after
    for control in root.locator(".options label, .tick, .picker, button").all():
        control.click()
        if (after := notebook.until_changed("state()", before)) != before:
            break
    assert after != before, "no click sets a trait"
    notebook.until_agreed("after keys and a click")
    root.get_by_role("button", name="Start again").click()
    assert notebook.until_changed("state()", after) == start
    notebook.until_agreed("after the start")


@every_kind
def test_browser_and_kernel_come_to_rest(notebook, kind):
    """No key is lost in a hurry, and neither of the two answers the other for ever."""
    root = notebook.show(kind)
    control = root.locator("[tabindex='0'], input[type=range]").first
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowDown", "ArrowRight"):
        control.press(key)
    notebook.until_agreed("after five keys")
    assert notebook.page.evaluate(HEARD) == 0


def test_the_figure_follows_the_theme_of_the_lab(notebook):
    root = notebook.show(KINDS[0])
    for theme, wanted in (("JupyterLab Dark", "dark"), ("JupyterLab Light", "light")):
        notebook.page.evaluate(
            "theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", theme
        )
        notebook.page.wait_for_function(
            "wanted => [...document.querySelectorAll('*')].some(e =>"
            " e.shadowRoot?.querySelector('section.figure')?.dataset.theme === wanted)",
            arg=wanted,
        )
    assert root.is_visible()


def test_nothing_was_asked_of_the_network(notebook):
    """After all of the above: no request left this machine, no script failed."""
    assert notebook.page.complaints == []
