"""How much memory a kernel took at most."""

from pathlib import Path


def peak_memory(pid: int) -> int | None:
    """The most memory that a running process has held, in bytes; None where the system doesn't say.

    Linux keeps it as VmHWM. (`getrusage` would also count what the parent held before it became this process.)
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    lines = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(lines[0][1]) * 1024 if lines else None
