"""A training run in a file: stop it at any moment, go on later, and get the same losses.

What a run is made of: the weights, what the optimiser remembers of each, where the schedule of the
learning rate is, the losses so far, and the random numbers to come (dropout draws them). The
batches aren't in it: they are drawn again from their beginning, and those already trained on are
passed over. `lib.training.train` does all of it, given a file name.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from lib._check import bad


class Part(Protocol):
    """Something with a state: a model, an optimiser, a schedule."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> object: ...


class Checkpoint:
    """The file of one training run.

    Args:
        path: where it is, or will be.
        parts: what has a state to keep, by name.
        settings: numbers that must be the same when the run goes on, such as how many steps.
        device: where the model computes, so that the random numbers drawn there go on too.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        parts: dict[str, Part],
        settings: dict[str, Any],
        device: torch.device,
    ) -> None:
        self.path = Path(path)
        self.parts, self.settings, self.device = parts, settings, device

    def save(self, history: list[float], batch: tuple[Tensor, ...]) -> None:
        """Writes the file. One that is there already stays whole until the new one is.

        Args:
            history: the loss of every step so far.
            batch: the last batch trained on, to know it again by.
        """
        state = {
            "parts": {name: part.state_dict() for name, part in self.parts.items()},
            "settings": self.settings,
            "history": history,
            "batch": batch,
            "random": random_state(self.device),
        }
        unfinished = self.path.with_name(self.path.name + ".unfinished")
        torch.save(_to_main_memory(state), unfinished)
        os.replace(unfinished, self.path)

    def resume(self, batches: Iterator[tuple[Tensor, ...]]) -> list[float]:
        """Puts everything back as it was when the file was written; if there is none, does nothing.

        Args:
            batches: the run's batches from their beginning. Those trained on are taken from it.

        Returns:
            The losses so far, none for a new run.

        Raises:
            ValueError: the file belongs to a run with other settings, another model or other
                batches.
        """
        if not self.path.exists():
            return []
        try:
            state = torch.load(self.path, weights_only=True)  # numbers only: no code is run
            saved, history = state["settings"], state["history"]
            parts, last, random = state["parts"], state["batch"], state["random"]
        except Exception as error:  # torch raises many kinds
            raise bad("checkpoint", f"{self.path} ({error})", "a file written by save") from error
        self._check_settings(saved)
        batch = None
        for _ in history:
            batch = next(batches, None)
        if batch is None or not _alike(_to_main_memory(batch), last):
            same = "batches that begin as they did the first time, from a generator of their own"
            raise bad("batches", f"others than those of {self.path}", same)
        for name, part in self.parts.items():
            try:
                part.load_state_dict(parts[name])
            except (RuntimeError, ValueError) as error:
                raise bad("checkpoint", f"{self.path} ({error})", f"the same {name}") from error
        set_random_state(random, self.device)
        return history

    def _check_settings(self, saved: dict[str, Any]) -> None:
        for name, value in self.settings.items():
            if saved.get(name) != value:
                as_saved = f"{saved.get(name)!r}, as in {self.path} (delete it to begin anew)"
                raise bad(name, repr(value), as_saved)


def random_state(device: torch.device) -> list[Tensor]:
    """The states of torch's global generators: the CPU's, and the device's if it has its own."""
    states, there = [torch.get_rng_state()], torch.get_device_module(device)
    if hasattr(there, "get_rng_state"):
        states.append(there.get_rng_state(*_which(device)))
    return states


def set_random_state(states: list[Tensor], device: torch.device) -> None:
    """Sets the global generators to what `random_state` gave, as far as they are there."""
    torch.set_rng_state(states[0])
    there = torch.get_device_module(device)
    if len(states) > 1 and hasattr(there, "set_rng_state"):
        there.set_rng_state(states[1], *_which(device))


def _which(device: torch.device) -> tuple[torch.device, ...]:
    """Nothing for the current device of its kind: kinds that come alone take no argument."""
    there = torch.get_device_module(device)
    current = there.current_device() if hasattr(there, "current_device") else device.index
    return () if device.index in (None, current) else (device,)


def _to_main_memory(state: Any) -> Any:
    """The same nest of dicts, lists and tuples, with every tensor in the computer's main memory."""
    if isinstance(state, Tensor):
        return state.detach().to(torch.get_rng_state().device)  # torch keeps these there
    if isinstance(state, dict):
        return {key: _to_main_memory(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(_to_main_memory(value) for value in state)
    return state


def _alike(batch: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> bool:
    return len(batch) == len(other) and all(map(torch.equal, batch, other))
