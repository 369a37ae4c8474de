"""The benchmark's ways are ways to the same numbers, and the stored table says what it may. No time is tested."""

import json
from dataclasses import fields
from itertools import pairwise

import pytest
import torch
from torch.utils._pytree import tree_leaves

from course import bench

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def small_cases():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "SIZES", (96, 160))
        return list(bench.cases(CPU))


def test_all_that_is_promised_is_there(small_cases):
    what = [case.what for case in small_cases]
    assert what.count("attention, forward") == what.count("attention, forward + backward") == 2
    assert {"loops, forward", "scores, forward"} <= set(what)
    for case in small_cases:
        if case.what.startswith("attention"):
            assert list(case.ways) == list(case.memory) == list(bench.ATTENTIONS)


@pytest.mark.parametrize("number", range(5))
def test_ways_lead_to_the_same_numbers(small_cases, number):
    """Loops, and attention forwards and backwards at two sizes: outputs and, where asked, gradients."""
    case = [case for case in small_cases if not case.what.startswith(("scores", "ViT"))][number]
    first, *others = (tree_leaves(way()) for way in case.ways.values())
    # the output comes first and gradients last; some give weights in between
    for other in others:
        torch.testing.assert_close(other[0], first[0], rtol=1e-5, atol=1e-5)
        if "backward" in case.what:
            torch.testing.assert_close(other[-3:], first[-3:], rtol=1e-5, atol=1e-5)
    assert len(others) >= 2


def test_a_step_of_the_two_transformers_runs():
    pytest.importorskip("lib.vit")
    images = torch.randn(3, 2, 8, 12, generator=torch.Generator().manual_seed(0))
    case = bench.vit_case("small", images, 4, dim=8, depth=2, heads=2)
    assert list(case.ways) == ["nn.TransformerEncoder", "lib.vit"]
    for way in case.ways.values():
        way()


def test_the_two_transformers_have_as_many_weights(monkeypatch):
    pytest.importorskip("lib.vit")
    counted = []

    def count(parameters, *arguments):
        counted.append(sum(p.numel() for p in parameters))

    monkeypatch.setattr(torch.optim, "AdamW", count)
    bench.vit_case("small", torch.zeros(3, 2, 8, 12), 4, dim=8, depth=2, heads=2)
    assert len(counted) == 2 and counted[0] == counted[1]


def test_what_needs_too_much_memory_is_left_out(monkeypatch):
    monkeypatch.setattr(bench, "MOST", bench.needs("lib.attention", 1024) - 1)
    case = bench.attention_case([torch.zeros(1, 1, 1024, bench.DIM)] * 3, backward=False)
    assert set(case.ways) == set(case.memory) == set(bench.ATTENTIONS) - bench.WHOLE
    assert bench.needs("lib.attention", max(bench.SIZES)) < 6e9


def test_it_prints_and_stores(monkeypatch, tmp_path, capsys):
    case = bench.Case(
        "sums", "n=3", {"one": lambda: sum([1, 2]), "two": lambda: 3}, {"two": lambda: 2_345_678}
    )
    monkeypatch.setattr(bench, "cases", lambda device: [case])
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    monkeypatch.setattr(bench, "STORED", tmp_path / "data" / "bench.json")
    monkeypatch.setattr(bench, "SECONDS", 1e-4)
    monkeypatch.setenv("COURSE_DEVICE", "cpu")
    assert bench.main() == 0 and not bench.STORED.exists()
    assert bench.main(save=True) == 0
    assert capsys.readouterr().out.count("2.35") == 2
    stored = json.loads(bench.STORED.read_text("utf8"))
    check_format(stored)
    one, two = stored["rows"]
    assert (one["how"], one["times_the_first"], one["megabytes"]) == ("one", 1.0, None)
    assert (two["how"], two["megabytes"]) == ("two", 2.35)


def check_format(stored: dict) -> None:
    """Processors, versions and rows; nothing else of the machine."""
    assert stored.keys() == {"machine", "versions", "rows"}
    assert (
        {"cpu", "cores", "threads"}
        <= stored["machine"].keys()
        <= {"cpu", "cores", "threads", "gpu"}
    )
    assert stored["versions"].keys() == {"python", "torch"}
    names = {field.name for field in fields(bench.Row)}
    assert stored["rows"] and all(row.keys() == names for row in stored["rows"])


@pytest.mark.skipif(not bench.STORED.exists(), reason="no table stored yet")
def test_the_stored_table():
    """Complete, and the memory in it is what the streaming form is for."""
    stored = json.loads(bench.STORED.read_text("utf8"))
    check_format(stored)
    peak = {
        (row["what"], row["how"], int(row["size"].split()[0].removeprefix("n="))): row["megabytes"]
        for row in stored["rows"]
        if row["device"] == "cpu" and row["what"].startswith("attention")
    }
    both = "attention, forward + backward"
    expected = {
        (what, how, n)
        for what in ("attention, forward", both)
        for how in bench.ATTENTIONS
        for n in bench.SIZES
    }
    assert peak.keys() == expected
    assert peak[both, "lib.streaming", 16384] < peak[both, "lib.attention", 16384] / 20
    streaming = [peak[both, "lib.streaming", n] for n in (4096, 8192, 16384)]
    assert all(small < large <= 2 * small for small, large in pairwise(streaming))  # linear
    assert any(row["what"].startswith("ViT") for row in stored["rows"])
