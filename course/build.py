"""Build the website from the stored outputs, and serve it on this machine."""

import functools
import hashlib
import http.server
import subprocess
import sys

from course import ROOT, SITE

# Sphinx looks at pages alone: when none has changed, it would not even copy a changed style sheet.
FRAME = ["_config.yml", "book/assets", "course/site/*.*"]
NOTE = ROOT / "_build" / "frame"


def frame() -> str:
    """A digest of what every page depends on beside its own source."""
    digest = hashlib.sha1()
    for pattern in FRAME:
        for path in sorted(ROOT.glob(pattern)):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def build() -> int:
    """Jupyter Book with warnings as errors. Nothing is executed; unchanged pages are kept."""
    now = frame()
    same = NOTE.exists() and NOTE.read_text() == now
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
        print(f"\nThe site is built: {(SITE / 'index.html').relative_to(ROOT)}")
        print("Open that file in a browser, or run `make serve` and open http://127.0.0.1:8000/")
    return done.returncode


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):  # one line a request would bury the address
        pass


def serve(port: int) -> int:
    if not (SITE / "index.html").exists():
        raise SystemExit("There is no site yet: make book")
    handler = functools.partial(Handler, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/  (Ctrl-C ends it)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
