"""`make bench`: how the course's code compares with other ways to the same numbers, as one table.

Times differ from machine to machine and from minute to minute: read the ratios. The ways that are compared take turns
within one run. Memory is the peak beyond the inputs, measured in a process of its own (`lib.measure`); on CUDA torch
counts it.

`python -m course bench --save` also stores the table, in book/data/bench.json, for chapter 11 to show.
"""

import importlib.util
import json
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_leaves
from torch.utils.benchmark import Timer

from course import ROOT
from lib import similarity
from lib.attention import attention
from lib.device import best_device
from lib.loops import pair_by_pair, row_by_row
from lib.measure import peak_extra_memory
from lib.streaming import streaming_attention

STORED = ROOT / "book" / "data" / "bench.json"
ROUNDS = 5  # in each, every way has its turn
SECONDS = 0.2  # of measuring, for each way in each round
SIZES = (1024, 2048, 4096, 8192, 16384)
DIM = 64
MOST = 6e9  # bytes: what would need more is left out
CPU = torch.device("cpu")


@dataclass
class Case:
    """Ways to one result. The first is the one that others are compared with."""

    what: str
    size: str
    ways: dict[str, Callable[[], object]]
    memory: dict[str, Callable[[], int | None]] = field(default_factory=dict)


@dataclass
class Row:
    """A line of the table."""

    device: str
    what: str
    size: str
    how: str
    milliseconds: float
    times_the_first: float
    megabytes: float | None  # peak beyond the inputs; None where it isn't measured


def math_path(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """torch's attention by plain products and a softmax: it holds n x n numbers."""
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(query, key, value)


ATTENTIONS = {
    "torch's SDPA, math path": math_path,
    "torch's SDPA, its best path": F.scaled_dot_product_attention,
    "lib.attention": attention,
    "lib.streaming": streaming_attention,
}
WHOLE = {"torch's SDPA, math path", "lib.attention"}  # they hold n x n numbers


def needs(how: str, n: int) -> float:
    """About how many bytes a way takes at most, forward and backward: for the n x n forms, four matrices of float32."""
    return 4 * 4 * n * n if how in WHOLE else 16 * 4 * n * DIM


def cases(device: torch.device) -> Iterator[Case]:
    draw = torch.Generator().manual_seed(0)

    def tokens(*shape: int) -> Tensor:
        return torch.randn(shape, generator=draw).to(device)

    small = [tokens(256, DIM) for _ in range(3)]
    loops = {
        "lib.attention": attention,
        "row by row": row_by_row,
        "pair by pair": pair_by_pair,
    }
    yield Case(
        "loops, forward",
        f"n=256 d={DIM}",
        {how: lambda form=form: form(*small) for how, form in loops.items()},
    )
    pair = [tokens(512, 32) for _ in range(2)]
    scores = {
        "dot": similarity.dot,
        "cosine": similarity.cosine,
        "squared_distance": similarity.squared_distance,
        "pairwise, same as dot": lambda *two: similarity.pairwise(
            lambda q, k: (q * k).sum(-1), *two
        ),
    }
    yield Case(
        "scores, forward",
        "n=512 d=32",
        {how: lambda form=form: form(*pair) for how, form in scores.items()},
    )
    for n in SIZES:
        for backward in (False, True):
            inputs = [tokens(1, 1, n, DIM).requires_grad_(backward) for _ in range(3)]
            yield attention_case(inputs, backward)
    if importlib.util.find_spec("lib.vit"):
        yield vit_case("digits, batch 64", tokens(64, 1, 8, 8), 2, dim=64, depth=2, heads=4)
        yield vit_case(
            "196 patches, batch 8", tokens(8, 3, 224, 224), 16, dim=192, depth=4, heads=3
        )


def attention_case(inputs: list[Tensor], backward: bool) -> Case:
    """The attentions on the same queries, keys and values, each a leaf with a batch and a head of one."""
    n = inputs[0].shape[-2]
    gradient = torch.ones_like(inputs[0])

    def call(form: Callable) -> object:
        result = form(*inputs)
        if not backward:
            return result
        return result, torch.autograd.grad(tree_leaves(result)[0], inputs, gradient)

    def peak(form: Callable) -> int | None:
        if inputs[0].device == CPU:
            return peak_extra_memory(form, *(tuple(x.shape) for x in inputs), backward=backward)
        if inputs[0].device.type != "cuda":
            return None
        call(form)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call(form)
        return torch.cuda.max_memory_allocated() - before

    forms = {how: form for how, form in ATTENTIONS.items() if needs(how, n) <= MOST}
    return Case(
        "attention, forward + backward" if backward else "attention, forward",
        f"n={n} d={DIM}",
        {how: lambda form=form: call(form) for how, form in forms.items()},
        {how: lambda form=form: peak(form) for how, form in forms.items()},
    )


def vit_case(size: str, images: Tensor, patch: int, dim: int, depth: int, heads: int) -> Case:
    """A step of training: our Vision Transformer, and the same with torch's encoder in place of our blocks."""
    from lib.vit import VisionTransformer

    class TorchsBlocks(VisionTransformer):
        def __init__(self, *arguments, **settings) -> None:
            super().__init__(*arguments, **settings)
            layer = nn.TransformerEncoderLayer(
                dim, heads, 2 * dim, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

        def forward(self, images: Tensor) -> Tensor:
            tokens = self.blocks(self.embed_patches(images))
            return self.answer(self.norm(tokens).mean(-2))

    target = torch.arange(len(images), device=images.device) % 10

    def step(kind: type[nn.Module]) -> Callable[[], None]:
        channels, *sides = images.shape[1:]
        draw = torch.Generator().manual_seed(0)
        model = kind(sides, patch, channels, 10, dim, depth, heads, generator=draw)
        model.to(images.device).train()
        optimiser = torch.optim.AdamW(model.parameters(), 1e-3)

        def once() -> None:
            loss = F.cross_entropy(model(images), target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

        return once

    ways = {"nn.TransformerEncoder": step(TorchsBlocks), "lib.vit": step(VisionTransformer)}
    return Case("ViT, a training step", size, ways)


def times(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median time of a call, in seconds. The timer waits for an accelerator to finish."""
    threads = torch.get_num_threads()
    timers = {
        how: Timer("way()", globals={"way": way}, num_threads=threads) for how, way in ways.items()
    }
    for timer in timers.values():
        timer.timeit(1)  # the first call loads and warms things up
    calls = {how: max(1, int(SECONDS / timer.timeit(1).mean)) for how, timer in timers.items()}
    rounds = [
        {how: timer.timeit(calls[how]).mean for how, timer in timers.items()}
        for _ in range(ROUNDS if max(calls.values()) > 1 else 3)  # 3: where every call is long
    ]
    return {how: median(taken[how] for taken in rounds) for how in ways}


def measure(case: Case, device: torch.device) -> Iterator[Row]:
    taken = times(case.ways)
    first = next(iter(taken.values()))
    for how, seconds in taken.items():
        peak = case.memory[how]() if how in case.memory else None
        yield Row(
            device.type,
            case.what,
            case.size,
            how,
            three_digits(1e3 * seconds),
            three_digits(seconds / first),
            None if peak is None else three_digits(peak / 1e6),
        )


def three_digits(number: float) -> float:
    return float(f"{number:.3g}")


def setting(devices: list[torch.device]) -> dict:
    """What the numbers depend on: processors and versions, and nothing else of the machine."""
    machine = {"cpu": cpu_model(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    if torch.device("cuda") in [torch.device(device.type) for device in devices]:
        machine["gpu"] = torch.cuda.get_device_name()
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"machine": machine, "versions": versions}


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf8").splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


HEAD = ("device", "what", "size", "how", "ms", "times the first", "peak MB")
LINE = "{:6} {:29} {:20} {:28} {:>9} {:>15} {:>8}"


def line(row: Row) -> str:
    return LINE.format(*("–" if cell is None else f"{cell:g}" if isinstance(cell, float) else cell
                         for cell in asdict(row).values()))  # fmt: skip


def main(save: bool = False, threads: int | None = None) -> int:
    if threads:
        torch.set_num_threads(threads)
    devices = [CPU] if best_device() == CPU else [CPU, best_device()]
    about = setting(devices)
    for name, facts in about.items():
        print(f"{name}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    print("\n" + LINE.format(*HEAD))
    rows = []
    for device in devices:
        for case in cases(device):
            for row in measure(case, device):
                rows.append(row)
                print(line(row), flush=True)
    if save:
        STORED.parent.mkdir(exist_ok=True)
        stored = {**about, "rows": [asdict(row) for row in rows]}
        STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf8")
        print(f"\nstored in {STORED.relative_to(ROOT)}")
    return 0
