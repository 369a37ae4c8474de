"""`python -m course study` chooses on the validation split alone, and stores what chapter 9 shows."""

import json
from statistics import mean

import pytest
import torch
from torch import nn

from course import study
from lib.recipes import TESTS, TRAINING, VALIDATION, VIT, digit_vit


@pytest.fixture
def faked(monkeypatch, tmp_path) -> list:
    """Nothing is trained: the middle learning rate without regularisation does best."""
    asked = []

    def score(make, settings, number, seed):
        model = make(seed, settings["dropout"])
        asked.append((settings, number, seed, model))
        rates = study.NETWORKS["linear"][1]
        return (
            90.0 + (settings["learning_rate"] == rates[1]) + (settings["dropout"] == 0) + seed / 10
        )

    monkeypatch.setattr(study, "score", score)
    monkeypatch.setattr(study, "ROOT", tmp_path)
    monkeypatch.setattr(study, "STORED", tmp_path / "data" / "digits.json")
    return asked


def test_settings_are_chosen_on_the_validation_split(faked):
    found = study.compare("linear")
    assert found["settings"] == {
        "learning_rate": study.NETWORKS["linear"][1][1],
        **study.REGULARISED["no"],
    }
    assert found["weights"] == 650
    assert found["tests"] == [[92.0, 92.1, 92.2]] * 3
    tries = len(found["tried"]) * len(study.TRIES)
    assert {number for _, number, _, _ in faked[:tries]} == {VALIDATION}
    assert [(number, seed) for _, number, seed, _ in faked[tries:]] == [
        (number, seed) for number in TESTS for seed in study.SEEDS
    ]
    assert all(settings == found["settings"] for settings, *_ in faked[tries:])


def test_it_stores(faked, capsys):
    assert study.main() == 0
    check_format(json.loads(study.STORED.read_text("utf8")))
    assert "positions" in capsys.readouterr().out


@pytest.mark.parametrize("name", study.NETWORKS)
def test_networks_give_logits_and_are_drawn_from_the_seed(name):
    def drawn(seed):
        torch.manual_seed(seed)
        return study.NETWORKS[name][0](seed, 0.2)

    model = drawn(0)
    dropouts = [layer.p for layer in model.modules() if isinstance(layer, nn.Dropout)]
    assert dropouts and set(dropouts) == {0.2}
    images = torch.rand(3, 1, 8, 8)
    assert model(images).shape == (3, 10)
    logits = [drawn(seed).eval()(images) for seed in (0, 0, 1)]
    assert logits[0].equal(logits[1]) and not logits[0].equal(logits[2])


def test_the_regularised_one_is_the_recipe():
    settings = {"learning_rate": TRAINING["learning_rate"], **study.REGULARISED["yes"]}
    recipe = {**TRAINING, "dropout": VIT["dropout"]}
    assert {**settings, "epochs": study.EPOCHS} == recipe


def check_format(stored: dict) -> None:
    """Accuracies, sizes, settings and versions; nothing else of the machine."""
    assert stored.keys() == {"versions", "epochs", "networks", "variants"}
    assert stored["versions"].keys() == {"python", "torch"}
    assert [network["name"] for network in stored["networks"]] == list(study.NETWORKS)
    for network in stored["networks"]:
        assert network.keys() == {"name", "weights", "settings", "tried", "tests"}
        assert len(network["tried"]) == 6
        assert [len(test) for test in network["tests"]] == [len(study.SEEDS)] * len(TESTS)
    assert [variant["name"] for variant in stored["variants"]] == list(study.VARIANTS)
    assert all(len(variant["validation"]) == len(study.SEEDS) for variant in stored["variants"])


@pytest.mark.skipif(not study.STORED.exists(), reason="nothing stored yet")
def test_what_is_stored():
    """Complete; the ViT as the recipe makes it, and at least 97 % on every test split."""
    stored = json.loads(study.STORED.read_text("utf8"))
    check_format(stored)
    vit = stored["networks"][0]
    assert vit["weights"] == sum(parameter.numel() for parameter in digit_vit(0).parameters())
    assert all(mean(test) >= 97 for test in vit["tests"])
    recipe = {key: value for key, value in TRAINING.items() if key != "epochs"}
    assert vit["settings"] == {**recipe, "dropout": VIT["dropout"]}
