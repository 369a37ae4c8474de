"""`python -m course study`: a Vision Transformer and four other networks on the digits, each chosen as carefully.

Every network has the same number of tries: three learning rates, each with and without regularisation, on the
validation split. The best is then trained with three seeds on each of three test splits, whose pictures chose nothing.
What a change does to the ViT is tried with three seeds on the validation split alone. The result is
book/data/digits.json, which chapter 9 shows.
"""

import json
import platform
from collections.abc import Callable
from functools import cache
from statistics import mean

import torch
from torch import Tensor, nn

from course import ROOT
from lib.recipes import TESTS, VALIDATION, accuracy, digit_split, digit_vit, train_digit_model

STORED = ROOT / "book" / "data" / "digits.json"
SEEDS = (0, 1, 2)
TRIES = SEEDS[:1]  # for each setting, on the validation split
EPOCHS = 40
REGULARISED = {
    "no": {"weight_decay": 0.01, "label_smoothing": 0.0, "dropout": 0.0},
    "yes": {"weight_decay": 0.2, "label_smoothing": 0.1, "dropout": 0.2},
}


class Rows(nn.Module):
    """A GRU reads the picture as eight rows, from the top, and answers after the last."""

    def __init__(self, dropout: float, width: int = 64) -> None:
        super().__init__()
        self.read = nn.GRU(8, width, batch_first=True)
        self.answer = nn.Sequential(nn.Dropout(dropout), nn.Linear(width, 10))

    def forward(self, images: Tensor) -> Tensor:
        states, _ = self.read(images[:, 0])
        return self.answer(states[:, -1])


def cnn(dropout: float, width: int = 32) -> nn.Module:
    def convolution(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
        return nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU()

    return nn.Sequential(
        *convolution(1, width), *convolution(width, width), nn.MaxPool2d(2), *convolution(width, 2 * width),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(dropout), nn.Linear(2 * width, 10),
    )  # fmt: skip


def mlp(dropout: float, width: int = 128) -> nn.Module:
    layers = (
        nn.Flatten(),
        nn.Linear(64, width),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(width, 10),
    )
    return nn.Sequential(*layers)


def linear(dropout: float) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Dropout(dropout), nn.Linear(64, 10))


# How each is built, given a seed (torch's global one is set to it) and dropout; and the learning rates to try.
NETWORKS: dict[str, tuple[Callable[[int, float], nn.Module], tuple[float, ...]]] = {
    "ViT": (lambda seed, dropout: digit_vit(seed, dropout=dropout), (1e-3, 2e-3, 4e-3)),
    "CNN": (lambda seed, dropout: cnn(dropout), (2e-3, 5e-3, 1e-2)),
    "row GRU": (lambda seed, dropout: Rows(dropout), (2e-3, 5e-3, 1e-2)),
    "MLP": (lambda seed, dropout: mlp(dropout), (2e-3, 5e-3, 1e-2)),
    "linear": (lambda seed, dropout: linear(dropout), (2e-2, 5e-2, 1e-1)),
}
# What is changed about the ViT.
VARIANTS: dict[str, dict] = {
    "as it is": {},
    "positions start at 0.02": {"position_spread": 0.02},
    "no positions": {"position_spread": None},
    "class token": {"pool": "class"},
}


@cache
def split(number: int) -> tuple[Tensor, ...]:
    return digit_split(number)


def score(make: Callable[[int, float], nn.Module], settings: dict, number: int, seed: int) -> float:
    """Trains one network on one split; gives its accuracy in percent on what is held out."""
    images, labels, held_out, truth = split(number)
    settings = dict(settings)
    torch.manual_seed(seed)
    model = make(seed, settings.pop("dropout"))
    train_digit_model(model, images, labels, seed, EPOCHS, **settings)
    return round(100 * accuracy(model, held_out, truth), 2)


def choose(name: str) -> tuple[dict, list[dict]]:
    """The settings with the best mean on the validation split (of equal ones the first), and all that were tried."""
    make, rates = NETWORKS[name]
    tried = []
    for rate in rates:
        for settings in REGULARISED.values():
            settings = {"learning_rate": rate, **settings}
            scores = [score(make, settings, VALIDATION, seed) for seed in TRIES]
            tried.append({**settings, "validation": scores})
            print(f"{name}: {settings}: {mean(scores):.2f} % on the validation split", flush=True)
    best = max(tried, key=lambda one: mean(one["validation"]))
    return {key: value for key, value in best.items() if key != "validation"}, tried


def compare(name: str) -> dict:
    settings, tried = choose(name)
    make = NETWORKS[name][0]
    tests = []
    for number in TESTS:
        tests.append([score(make, settings, number, seed) for seed in SEEDS])
        print(f"{name}: test split {number}: {mean(tests[-1]):.2f} %, {tests[-1]}", flush=True)
    weights = sum(parameter.numel() for parameter in make(0, 0.0).parameters())
    return {"name": name, "weights": weights, "settings": settings, "tried": tried, "tests": tests}


def vary(name: str, changes: dict, settings: dict) -> dict:
    def make(seed: int, dropout: float) -> nn.Module:
        return digit_vit(seed, dropout=dropout, **changes)

    scores = [score(make, settings, VALIDATION, seed) for seed in SEEDS]
    print(f"ViT, {name}: {mean(scores):.2f} % on the validation split, {scores}", flush=True)
    return {"name": name, "validation": scores}


def main() -> int:
    torch.set_num_threads(1)
    networks = [compare(name) for name in NETWORKS]
    variants = [vary(name, changes, networks[0]["settings"]) for name, changes in VARIANTS.items()]
    stored = {
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "epochs": EPOCHS,
        "networks": networks,
        "variants": variants,
    }
    STORED.parent.mkdir(exist_ok=True)
    STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", "utf8")
    print(f"stored in {STORED.relative_to(ROOT)}")
    return 0
