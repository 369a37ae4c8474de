"""The other side of the wall: this runs in the sandbox, in a process that holds nothing but one student's work.

It gives up what rights it has, sets limits, imports torch once, and then serves: for each exercise a forked child,
which runs the student's definitions and answers requests, so that what one exercise breaks the next one finds whole.
Whatever the student's code does to this file, to torch or to the pipe, it can only spoil its own results: the check
and the points are on the other side.

Run as: python -I -B inside.py SETTINGS, with requests on stdin and replies on stdout.
"""

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

SWEEP_SECONDS = 4  # less than the other side waits for word that an exercise is over


class Unclean(Exception):
    """Something that the student's code started can't be ended."""


def limit(what: int, value: int) -> None:
    """Lower a limit for good; one that is lower already stays as it is."""
    _, hard = resource.getrlimit(what)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(what, (value, value))


def settle(settings: dict) -> None:
    """Become nobody, and take what limits do not depend on torch."""
    if settings["uid"] is not None:
        os.setgroups([])
        os.setresgid(*[settings["uid"]] * 3)
        os.setresuid(*[settings["uid"]] * 3)
        if settings["inner"]:
            # a second, inner wall, where nobody can make namespaces of their own: that part of the kernel
            # has had holes. Built by the nobody that we are now, so limits on processes bind inside, too.
            wall = "--unshare-user --disable-userns --uid 65534 --gid 65534 --dev-bind / / --"
            again = json.dumps({**settings, "uid": None})
            run = [settings["inner"], *wall.split(), *sys.orig_argv[:-1], again]
            os.execv(run[0], run)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_FSIZE, settings["file_bytes"])
    limit(resource.RLIMIT_NOFILE, 64)
    if settings["processes"] is not None:
        limit(resource.RLIMIT_NPROC, settings["processes"])


def pipes() -> tuple[int, int]:
    """The two ends, moved away from stdin and stdout: what the student prints goes nowhere."""
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):  # 2 stays until all is ready, for what goes wrong in this file
        os.dup2(nowhere, fd)
    return requests, replies


def used_address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def serve(requests: int, replies: int, settings: dict, wire) -> None:
    keep = running() if settings["alone"] else set()
    while True:
        request = wire.receive(requests)
        child = os.fork()
        if child == 0:
            try:
                limit(resource.RLIMIT_CPU, settings["cpu_seconds"])
                answer_requests(request, requests, replies, wire)
            except BaseException:
                pass
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if settings["alone"]:
            sweep(keep)
        if not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0):
            wire.send(replies, {"kind": "died", "status": status})
        else:
            wire.send(replies, {"kind": "ended"})


def running() -> set[int]:
    return {int(name) for name in os.listdir("/proc") if name.isdigit()}


def sweep(keep: set[int]) -> None:
    """End what the student's code has left running: all but those who were there before it.

    A killed process takes a while to go on a busy machine. Those who stay for good end the sandbox: it isn't clean.
    """
    until = time.monotonic() + SWEEP_SECONDS
    while left := running() - keep:
        if time.monotonic() > until:
            raise Unclean(f"{len(left)} processes are left")
        for one in left:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        time.sleep(0.01)


def answer_requests(first: dict, requests: int, replies: int, wire) -> None:
    """In the child: run the definitions, then answer until told to stop."""
    from lib.checks._student import answer, told

    world: dict = {"__name__": "__main__", "__builtins__": __builtins__}
    try:
        import linecache

        for name, source in first["pieces"]:
            linecache.cache[name] = (len(source), None, source.splitlines(True), name)
            exec(compile(source, name, "exec"), world)
        things = {name: world[name] for name in first["names"]}
        reply = {"kind": "value", "value": None}
    except BaseException as error:
        reply = {"kind": "error", **told(error)}
    wire.send(replies, reply)
    if reply["kind"] == "error":
        return
    while True:
        request = wire.receive(requests)
        if request["do"] == "end":
            return
        wire.send(replies, packable(answer(things, request), wire))


def packable(reply: dict, wire) -> dict:
    """The reply, or what is wrong with it, if it is too large to be sent."""
    try:
        if len(wire.pack(reply)) <= wire.MOST_BYTES:
            return reply
        return {"kind": "no data", "message": f"more than {wire.MOST_BYTES // 2**20} MB of numbers"}
    except wire.Malformed as error:
        return {"kind": "no data", "message": str(error)}


def main() -> None:
    settings = json.loads(sys.argv[1])
    settle(settings)
    requests, replies = pipes()
    sys.path.insert(0, settings["home"])
    import torch
    import wire  # lies beside this file

    torch.set_num_threads(1)
    import torch.nn.functional

    import lib.checks._student  # noqa: F401

    if settings["memory_bytes"] is not None:
        limit(resource.RLIMIT_AS, used_address_space() + settings["memory_bytes"])
    os.dup2(0, 2)
    wire.send(replies, {"kind": "ready"})
    try:
        serve(requests, replies, settings, wire)
    except (wire.Closed, Unclean):  # the other side is done, or starts a fresh sandbox
        pass


if __name__ == "__main__":
    main()
