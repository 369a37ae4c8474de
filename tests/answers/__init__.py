"""Answers to the exercises, right and wrong, one module a chapter: `chapter_06.py`, found by itself.

For each exercise at least two right answers, written differently, and at least four wrong ones: real mistakes,
one of them subtle. A wrong one names words of the message that is meant for it:

    @right("all_scores")
    def by_einsum(query, key): ...

    @wrong("all_scores", "the division by √d is missing")
    def unscaled(query, key): ...

An exercise that asks for several names gets a class that holds them: `class split_by_view: split = ...; merge = ...`
with `@wrong("split_and_merge", "...", several=True)`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    exercise: str
    name: str
    thing: object
    message: str | None  # None for a right one
    several: bool = False

    def things(self, names) -> list:
        return [vars(self.thing)[name] for name in names] if self.several else [self.thing]


ANSWERS: list[Answer] = []


def right(exercise: str, several: bool = False):
    def keep(thing):
        ANSWERS.append(Answer(exercise, thing.__name__, thing, None, several))
        return thing

    return keep


def wrong(exercise: str, message: str, several: bool = False):
    def keep(thing):
        ANSWERS.append(Answer(exercise, thing.__name__, thing, message, several))
        return thing

    return keep
