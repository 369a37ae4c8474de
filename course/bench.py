"""`make bench`: how the course's code compares with other ways to the same numbers, as one table.

Times differ from machine to machine and from minute to minute: read the ratios, which come from one run.
"""

import platform

import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.benchmark import Timer

from lib import similarity
from lib.attention import attention
from lib.device import best_device
from lib.normalise import softmax

SECONDS = 1.0  # of measuring, for each entry


def loops(query, key, value):
    """Attention one number at a time, as the sum is written; for one batch, in plain tensors."""
    scale = query.shape[-1] ** -0.5
    rows = []
    for q in query:
        scores = torch.stack([scale * q.dot(k) for k in key])
        weights = softmax(scores)
        rows.append(sum(w * v for w, v in zip(weights, value, strict=True)))
    return torch.stack(rows)


def math_path(query, key, value):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(query, key, value)


def cases(device):
    """(what, size, the reference, the others): each a function of no argument."""
    draw = torch.Generator().manual_seed(0)

    def tokens(*shape):
        return torch.randn(shape, generator=draw).to(device)

    small = [tokens(256, 64) for _ in range(3)]
    yield (
        "attention",
        "n=256 d=64",
        {
            "lib.attention": lambda: attention(*small),
            "loops over rows and keys": lambda: loops(*small),
        },
    )
    for n in (1024, 4096):
        qkv = [tokens(1, 1, n, 64) for _ in range(3)]
        yield (
            "attention",
            f"n={n} d=64",
            {
                "torch's SDPA, math path": lambda qkv=qkv: math_path(*qkv),
                "torch's SDPA, its choice": lambda qkv=qkv: F.scaled_dot_product_attention(*qkv),
                "lib.attention": lambda qkv=qkv: attention(*qkv),
            },
        )
    pair = [tokens(512, 32) for _ in range(2)]
    yield (
        "scores",
        "n=512 d=32",
        {
            "similarity.dot": lambda: similarity.dot(*pair),
            "similarity.cosine": lambda: similarity.cosine(*pair),
            "similarity.squared_distance": lambda: similarity.squared_distance(*pair),
            "pairwise, same as dot": lambda: similarity.pairwise(
                lambda q, k: (q * k).sum(-1), *pair
            ),
        },
    )


def seconds(function) -> float:
    """The median time of one call. The timer waits for an accelerator to finish."""
    timer = Timer("function()", globals={"function": function}, num_threads=torch.get_num_threads())
    return timer.blocked_autorange(min_run_time=SECONDS).median


def main() -> int:
    device = best_device()
    print(
        f"torch {torch.__version__}, {device}, {torch.get_num_threads()} threads, {platform.machine()}\n"
    )
    print(f"{'what':10} {'size':11} {'how':28} {'ms':>10} {'times the first':>16}")
    for what, size, ways in cases(device):
        first = None
        for how, function in ways.items():
            time = seconds(function)
            first = first or time
            print(
                f"{what:10} {size:11} {how:28} {1e3 * time:10.3f} {time / first:16.2f}", flush=True
            )
    return 0
