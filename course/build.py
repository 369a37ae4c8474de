"""Build the website from the stored outputs, and serve it on this machine."""

import contextlib
import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

from course import HEAVY, ROOT, SITE

# Sphinx looks at pages alone: when none has changed, it would not even copy a changed style sheet.
FRAME = ["_config.yml", "_toc.yml", "book/assets", "course/site/*.*", "course/site/templates"]
NOTE = ROOT / "_build" / "frame"
# Their words may turn up in a page while it is read, so style rules that speak of them stay.
RUN_TIME = ["lib/widgets/*.js", "lib/widgets/*.css", "book/assets/**/*.js"]


def frame() -> str:
    """A digest of what every page depends on beside its own source."""
    digest = hashlib.sha1()
    for pattern in FRAME:
        for path in sorted(ROOT.glob(pattern)):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def alone():
    """Two builds at once, as by two test processes, would write into each other: the second waits for the first."""
    (ROOT / "_build").mkdir(exist_ok=True)
    with open(ROOT / "_build" / "lock", "a") as file:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file, or the end of the process, opens the lock


def build(heavy: bool = False) -> int:
    """The website: as Sphinx writes it, then (unless `heavy`) made light."""
    with alone():
        failed = write_pages()
        if failed:
            return failed
        if not heavy:
            from course.site.slim import slim

            run_time = [file for pattern in RUN_TIME for file in sorted(ROOT.glob(pattern))]
            slim(HEAVY, SITE, ROOT / "_build" / "slim", run_time)
    where = (HEAVY if heavy else SITE) / "index.html"
    command = "python -m course serve --heavy" if heavy else "make serve"
    print(f"\nThe site is built: {where.relative_to(ROOT)}")
    print(f"Open that file in a browser, or run `{command}` and open http://127.0.0.1:8000/")
    return 0


def write_pages() -> int:
    """Jupyter Book with warnings as errors. Nothing is executed; unchanged pages are kept."""
    now = frame()
    same = NOTE.exists() and NOTE.read_text() == now
    if not same:  # Sphinx never removes a page, or a script, that the site no longer has
        shutil.rmtree(HEAVY, ignore_errors=True)
    start = "from jupyter_book.cli.main import main; main()"
    # --keep-going: show all warnings, not the first alone
    options = [
        "build",
        ".",
        "--path-output",
        ".",
        "-W",
        "--keep-going",
        "-q",
        *([] if same else ["--all"]),
    ]
    done = subprocess.run(
        [sys.executable, "-c", start, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:  # warnings and errors went to stderr as they came
        print(done.stdout)
        NOTE.unlink(
            missing_ok=True
        )  # build all next time, or a page that is kept hides its warning
    else:
        NOTE.write_text(now)
    return done.returncode


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):  # one line a request would bury the address
        pass


def server(folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Serves that folder on this machine alone, once somebody runs it; port 0 is any that is free."""
    handler = functools.partial(Handler, directory=str(folder))
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)


@contextlib.contextmanager
def served(folder: Path):
    """The address of that folder, served while the block runs."""
    with server(folder) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def serve(port: int, heavy: bool = False) -> int:
    folder = HEAVY if heavy else SITE
    if not (folder / "index.html").exists():
        raise SystemExit("There is no site yet: make book")
    with server(folder, port) as running:
        print(f"http://127.0.0.1:{running.server_port}/  (Ctrl-C ends it)", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
