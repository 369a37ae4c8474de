"""A sandbox for one submission: bubblewrap, limits, and the trusted end of the pipe.

Inside there is the system and Python, read only, a copy of `lib`, and an empty folder in memory; no network, no home,
no environment, nobody else's processes. A student's process belongs to a user who owns nothing.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from course import ROOT
from course.grade import wire

MB = 2**20
PATIENCE = 6
TICK = 0.1  # seconds between looks at what a sandbox uses


class Unavailable(Exception):
    """No sandbox can be had here; the message says why and what to do."""


@dataclass(frozen=True)
class Limits:
    # Time is processor time, so that a busy machine gives the same grades as an idle one; PATIENCE times as much
    # may pass on the clock, for those who only wait.
    call_seconds: float = 10  # one call of a student's function
    exercise_seconds: float = 60  # all calls of an exercise
    start_seconds: float = (
        120  # until torch is imported: slow on a busy machine, and no student's fault
    )
    memory_bytes: int = 1024 * MB  # of address space, on top of what torch takes by itself
    total_bytes: int = 2048 * MB  # resident, of all processes in the sandbox together
    file_bytes: int = 16 * MB  # one file
    folder_bytes: int = 64 * MB  # all files
    processes: int = 24  # and threads


@dataclass
class Ended:
    """How a student's process ended, in words for the report."""

    came: str
    expected: str
    likely: str = ""

    def reply(self) -> dict:
        return {"kind": "limit", **{"message": self.came, **asdict(self)}}


def stage(folder: Path) -> Path:
    """What the sandbox sees of the course: `lib` without the chapters' checks, and two files of this package."""
    home = folder / "course-inside"
    hidden = shutil.ignore_patterns("__pycache__", "chapter_*.py")
    shutil.copytree(ROOT / "lib", home / "lib", ignore=hidden)
    for name in ("inside.py", "wire.py"):
        shutil.copy(Path(__file__).parent / name, home / name)
    for path in [home, *home.rglob("*")]:  # readable for the user who owns nothing
        path.chmod(0o755 if path.is_dir() else 0o644)
    folder.chmod(0o755)
    return home


def python_folders() -> list[str]:
    """The folders that this Python needs: its environment and the installation behind it."""
    candidates = [sys.prefix, sys.base_prefix, *(p for p in sys.path if "site-packages" in p)]
    candidates += [p for p in sys.path if "dist-packages" in p]
    found: list[str] = []
    for folder in sorted({os.path.realpath(p) for p in candidates} | set(candidates)):
        covered = any(folder == f or folder.startswith(f + os.sep) for f in [*found, "/usr"])
        if os.path.isdir(folder) and not covered:
            found.append(folder)
    return found


def bubblewrap() -> str:
    """Where bubblewrap is; Unavailable, with what to do, where it is missing or can't do its work."""
    program = shutil.which("bwrap")
    weaker = "or accept weaker isolation with --weak-isolation"
    if not program:
        raise Unavailable(
            "bubblewrap is not installed, and student code must not run without it: "
            f"apt-get install bubblewrap (Linux only), {weaker}"
        )
    test = [program, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    done = subprocess.run(test, capture_output=True, text=True, env={}, timeout=30)
    if done.returncode:
        raise Unavailable(
            f"bubblewrap can't make namespaces here ({done.stderr.strip()}): allow unprivileged user namespaces "
            f"(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), {weaker}"
        )
    return program


def command(home: Path, limits: Limits, as_root: bool) -> list[str]:
    """bubblewrap's arguments. Order matters: what comes later lies on top."""
    # fmt: off
    arguments = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
                 "--die-with-parent", "--new-session", "--hostname", "sandbox"]
    if as_root:
        # Limits on processes don't bind root, nor anybody whom root only plays in a user namespace. So root
        # builds the walls, and inside.py becomes somebody else before it does anything.
        arguments += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        arguments += ["--unshare-user", "--disable-userns", "--uid", "65534", "--gid", "65534"]
    for folder in ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        else:
            arguments += ["--ro-bind-try", folder, folder]
    for file in ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives"):
        arguments += ["--ro-bind-try", file, file]
    # before Python's folders, one of which may lie in it
    arguments += ["--perms", "1777", "--size", str(limits.folder_bytes), "--tmpfs", "/tmp"]
    for folder in python_folders():
        for parent in reversed(Path(folder).parents):
            if str(parent) not in ("/", "/tmp"):  # else of bubblewrap's making, and root's alone
                arguments += ["--perms", "0755", "--dir", str(parent)]
        arguments += ["--ro-bind", folder, folder]
    arguments += ["--proc", "/proc", "--dev", "/dev",
                  "--perms", "1777", "--size", str(limits.folder_bytes), "--tmpfs", "/dev/shm",
                  "--remount-ro", "/dev",
                  "--ro-bind", str(home), "/course", "--chdir", "/tmp", "--remount-ro", "/",
                  "--clearenv"]
    # fmt: on
    for name, value in environment("/tmp").items():
        arguments += ["--setenv", name, value]
    return arguments


def environment(folder: str) -> dict[str, str]:
    """The whole environment of a student's process."""
    fixed = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "MPLBACKEND": "Agg", "LANG": "C.UTF-8"}
    homes = {"HOME": folder, "TMPDIR": folder, "MPLCONFIGDIR": folder, "USER": "student"}
    return {**fixed, **homes, "PATH": "/usr/bin:/bin", "COURSE_PROGRESS": "off"}


class Sandbox:
    """One running sandbox. Use as a context; `load`, then `ask`, then `unload`, for one exercise after the other."""

    inner_wall = True  # for root: see inside.py

    def __init__(self, home: Path, limits: Limits = Limits(), weak: bool = False, slot: int = 0):
        self.home, self.limits, self.weak, self.slot = home, limits, weak, slot
        self.process: subprocess.Popen | None = None
        self.ended: Ended | None = None
        self.call_began: float | None = None  # processor time used until then
        self.loaded = False

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    # Life and death

    def start(self) -> None:
        """Start it; Unavailable if that can't be done."""
        try:
            self._start(inner=Sandbox.inner_wall)
        except Unavailable:
            if not Sandbox.inner_wall or self.weak or os.geteuid() != 0:
                raise
            self._start(inner=False)
            Sandbox.inner_wall = False  # a kernel that lets root alone make namespaces

    def _start(self, inner: bool) -> None:
        as_root = not self.weak and os.geteuid() == 0
        settings = {
            # a uid for each sandbox that runs at the same time, also of another `grade`: limits count by uid
            "uid": 100_000 + os.getpid() % 60_000 * 64 + self.slot % 64 if as_root else None,
            "inner": bubblewrap_path() if inner else None,
            "home": str(self.home) if self.weak else "/course",
            "alone": not self.weak,
            "file_bytes": self.limits.file_bytes,
            "memory_bytes": self.limits.memory_bytes if sys.platform == "linux" else None,
            "processes": None if self.weak else self.limits.processes + self._others(as_root),
            "cpu_seconds": int(self.limits.exercise_seconds),
        }
        inside = str(self.home / "inside.py") if self.weak else "/course/inside.py"
        run = [sys.executable, "-I", "-B", inside, json.dumps(settings)]
        options: dict = {"env": {}}
        if self.weak:
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            options |= {"cwd": self._folder.name, "env": environment(self._folder.name)}
        else:
            # by a file, not on the command line: inside, /proc/1/cmdline can be read
            arguments = command(self.home, self.limits, as_root)
            listed = tempfile.TemporaryFile()
            listed.write("\0".join(arguments).encode() + b"\0")
            listed.seek(0)
            run = [bubblewrap_path(), "--args", str(listed.fileno()), "--", *run]
            options |= {"pass_fds": [listed.fileno()], "cwd": "/"}
        self.process = subprocess.Popen(
            run,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            **options,
        )
        if not self.weak:
            listed.close()
        self.ended = None
        try:
            reply = wire.receive(self.process.stdout.fileno(), self.limits.start_seconds)
        except (wire.Closed, wire.TooSlow, wire.Malformed) as error:
            self._kill()
            said = self.process.stderr.read(2000).decode(errors="replace").strip()
            raise Unavailable(
                f"the sandbox did not start ({type(error).__name__}): {said}"
            ) from None
        if reply != {"kind": "ready"}:
            self._kill()
            raise Unavailable(f"the sandbox did not start: {reply}")
        self.process.stderr.close()
        if sys.platform == "linux":
            threading.Thread(target=self._watch, args=(self.process,), daemon=True).start()

    def _others(self, as_root: bool) -> int:
        """How many processes count against the limit already. Since Linux 5.14 only those in the sandbox do."""
        if as_root or tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= (5, 14):
            return 4
        own = os.getuid()
        tasks = [t for t in Path("/proc").glob("[0-9]*") if t.stat().st_uid == own]
        return 4 + sum(len(list((task / "task").iterdir())) for task in tasks if task.exists())

    def _watch(self, process: subprocess.Popen) -> None:
        """End the sandbox when its processes use too much, together: memory, or time for one call."""
        while process.poll() is None:
            try:
                ended = self._excess(process.pid)
            except Exception as error:  # a watchman who fails must not leave the gate open
                ended = Ended(f"its use of the machine can't be measured: {error!r}", "a result")
            if ended:
                self.ended = ended
                self._kill(process)
                return
            time.sleep(TICK)

    def _excess(self, pid: int) -> Ended | None:
        """What a sandbox uses too much of at this moment, if anything."""
        limits, began = self.limits, self.call_began  # read once: the other thread may end the call
        if resident(pid, limits.total_bytes) > limits.total_bytes:
            most = f"{limits.total_bytes // MB} MB"
            return Ended(f"more than {most} of memory in all processes together", f"at most {most}")
        if began is not None and cpu_seconds(pid) - began > limits.call_seconds:
            return self._too_slow()
        return None

    def _too_slow(self) -> Ended:
        said = f"no result within {self.limits.call_seconds:g} seconds"
        return Ended(said, "a result in less time", "a loop that doesn't end?")

    def _kill(self, process: subprocess.Popen | None = None) -> None:
        process = process or self.process
        try:  # its own session: the whole group; in a namespace everything else dies with its first process
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            process.kill()
        process.wait()

    def stop(self) -> None:
        if self.process:
            self._kill()
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                stream.close()
            self.process, self.loaded = None, False
        if self.weak and hasattr(self, "_folder"):
            self._folder.cleanup()

    # Work

    def load(self, pieces: list[tuple[str, str]], names: list[str]) -> dict:
        """Run an exercise's definitions in a fresh child. Gives kind "value", or what went wrong."""
        if self.process is None:
            self.start()
        self.ended = None  # of the exercise before
        self.deadline = time.monotonic() + PATIENCE * self.limits.exercise_seconds
        self.loaded = True
        reply = self._exchange({"pieces": [list(piece) for piece in pieces], "names": names})
        if reply["kind"] == "error":
            self._finish()
        return reply

    def ask(self, request: dict) -> dict:
        """Pass on one request of a check. Whatever happens on the other side, a reply comes back."""
        if not self.loaded:
            return (self.ended or Ended("no process to answer", "a result")).reply()
        return self._exchange(request)

    def unload(self) -> None:
        """The exercise is over; a sandbox that is still in order is kept for the next."""
        if self.loaded:
            try:
                wire.send(self.process.stdin.fileno(), {"do": "end"})
            except wire.Closed:
                self.stop()
                return
            self._finish()

    def _finish(self) -> None:
        """Wait until the child is gone and its leftovers are swept away; else end it all."""
        self.loaded = False
        try:
            for _ in range(50):  # replies that nobody asked for may lie in between
                reply = wire.receive(self.process.stdout.fileno(), 5)
                if isinstance(reply, dict) and reply.get("kind") in ("ended", "died"):
                    return
        except (wire.Closed, wire.TooSlow, wire.Malformed):
            pass
        self.stop()

    def _exchange(self, request: dict) -> dict:
        left = self.deadline - time.monotonic()
        seconds = min(PATIENCE * self.limits.call_seconds, left)
        try:
            self.call_began = cpu_seconds(self.process.pid)
            wire.send(self.process.stdin.fileno(), request)
            reply = wire.receive(self.process.stdout.fileno(), max(seconds, 0.01))
            self.call_began = None
            if not isinstance(reply, dict) or not well_formed(reply):
                raise wire.Malformed("a reply that is none")
            if reply["kind"] in ("died", "ended"):
                self.loaded = False
                self.ended = death(reply.get("status", 0))
                return self.ended.reply()
            return reply
        except wire.TooSlow:
            ended = self._too_slow()
        except wire.Closed:
            ended = self.ended or Ended("the process ended", "a result")
        except wire.Malformed as error:
            ended = Ended(
                f"an answer that is no data: {error}", "tensors, numbers, words, lists of them"
            )
        self.call_began = None
        self.ended = self.ended or ended
        told = self.ended.reply()
        self.stop()
        return told


def well_formed(reply: dict) -> bool:
    """Whether a reply has the parts of its kind: a student's process may send anything."""
    words = {
        "error": ("type", "message", "code"),
        "refused": ("name",),
        "no data": ("message",),
        "unfinished": (),
        "value": (),
        "died": (),
        "ended": (),
    }.get(reply.get("kind") if isinstance(reply.get("kind"), str) else None)
    if words is None or not all(isinstance(reply.get(w), str) for w in words):
        return False
    if reply["kind"] == "value" and "value" not in reply:
        return False
    if reply["kind"] == "died" and not isinstance(reply.get("status"), int):
        return False
    line = reply.get("line")
    return line is None or isinstance(line, int)


def death(status: int) -> Ended:
    """What a process's exit status says, in words."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Ended(
                "the time limit was reached", "a result in less time", "a loop that doesn't end?"
            )
        name = signal.Signals(number).name if number in signal.valid_signals() else number
        return Ended(f"the process was ended by {name}", "a result")
    return Ended("the process ended itself", "a result: a function must not end Python")


def family(pid: int) -> dict[int, list[str]]:
    """A process and all its descendants: number -> the fields of its /proc/N/stat from the third on."""
    children: dict[int, list[int]] = {}
    stats: dict[int, list[str]] = {}
    for folder in os.listdir("/proc") if sys.platform == "linux" else ():
        if folder.isdigit():
            try:
                stat = Path("/proc", folder, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            children.setdefault(int(stat[1]), []).append(int(folder))
            stats[int(folder)] = stat
    found, waiting = {}, [pid]
    while waiting:
        one = waiting.pop()
        if one in stats:
            found[one] = stats[one]
        waiting += children.get(one, [])
    return found


def cpu_seconds(pid: int) -> float:
    """The processor time that a process, its descendants and those of them that have ended have used."""
    ticks = sum(int(n) for stat in family(pid).values() for n in stat[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident(pid: int, enough: int) -> int:
    """The resident memory of a process and of all its descendants, in bytes; shared pages count once.

    Counting shared pages properly is slow, so it is done only where the quick sum comes to `enough`.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    pages = {one: int(stat[21]) * page for one, stat in family(pid).items()}
    quick = sum(pages.values())
    return quick if quick < enough else sum(_share(one, size) for one, size in pages.items())


def _share(pid: int, otherwise: int) -> int:
    """A process's share of the memory it is in: what it has with others is divided among them."""
    try:
        text = Path("/proc", str(pid), "smaps_rollup").read_text()
        return 1024 * int(re.search(r"^Pss:\s+(\d+) kB", text, re.M)[1])
    except (OSError, TypeError):  # ended, or not for us to see
        return otherwise


def bubblewrap_path() -> str:
    return shutil.which("bwrap") or "bwrap"
