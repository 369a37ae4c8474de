"""Where to compute: the one place in `lib` that names a device.

Everything else works where its inputs are. A chapter asks here once and moves its tensors:
`device = best_device()`, then `images.to(device)`.
"""

import os

import torch

VARIABLE = "COURSE_DEVICE"


def best_device() -> torch.device:
    """The accelerator that torch finds (CUDA, MPS, XPU, ...), or the CPU where there is none.

    The environment variable `COURSE_DEVICE` overrides the choice: "cpu", the accelerator's name
    such as "cuda", or one of several, "cuda:1". Unset or empty, it changes nothing.

    Returns:
        The device to compute on.

    Raises:
        ValueError: `COURSE_DEVICE` names no device of this machine.
    """
    default, possible = "cpu", ["cpu"]
    if torch.accelerator.is_available():
        default = torch.accelerator.current_accelerator().type
        count = torch.accelerator.device_count()
        possible += [default, *(f"{default}:{index}" for index in range(count))]
    wanted = os.environ.get(VARIABLE) or default
    if wanted not in possible:
        raise ValueError(
            f"{VARIABLE}: expected one of {', '.join(possible)} (or nothing), got {wanted!r}"
        )
    return torch.device(wanted)
