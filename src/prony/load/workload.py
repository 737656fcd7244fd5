"""From a plan to requests that are ready to be sent, for one worker process or several."""

from collections import deque
from collections.abc import Sequence

import numpy as np

from prony.base.errors import ConfigError
from prony.load.arrivals import offsets_ns
from prony.load.conversations import Conversation, Conversations
from prony.load.exchange import Exchange
from prony.load.lengths import draw_lengths, shortest, uniform
from prony.load.prompts import Exactness, Prompter, make_prompter
from prony.load.recorded import replay
from prony.load.render import Renderer
from prony.load.request import Target
from prony.load.source import Queue, Source
from prony.spec.load import MAX_TOKENS, LoadPlan
from prony.spec.workload import FileWorkload, Lengths, MultiTurn, RandomTokens


class Workload:
    """Warm-ups, whose prompts no measured request has, and measured requests, in index order.

    lengths: how the input lengths came about. Independent requests fall to workers one by one, conversations whole; all
    workers together follow one schedule.
    """

    def __init__(
        self,
        plan: LoadPlan,
        warmups: list[Exchange],
        measured: list[Exchange],
        lengths: Exactness,
        offsets: list[int] | None,
        conversations: "list[Conversation] | None" = None,
        renderer: Renderer | None = None,
    ) -> None:
        self.warmups, self.measured, self.lengths = warmups, measured, lengths
        self._plan, self._offsets = plan, offsets
        self._conversations, self._renderer = conversations, renderer
        self._turns = None if conversations is None else [list(one.turns) for one in conversations]

    def share(self, worker: int, workers: int) -> list[Exchange]:
        """Return the measured requests of a worker."""
        if self._turns is None:
            return self.measured[worker::workers]
        return [turn for turns in self._turns[worker::workers] for turn in turns]

    def source(self, worker: int, workers: int) -> Source:
        """Return the measured requests of a worker as they become due."""
        offsets = None if self._offsets is None else self._offsets[worker::workers]
        if self._conversations is None:
            return Queue(self.measured[worker::workers], offsets)
        assert self._renderer is not None
        slots = self._plan.concurrency // workers + (worker < self._plan.concurrency % workers)
        return Conversations(self._renderer, self._conversations[worker::workers], slots, offsets)

    def warmup_source(self, worker: int, workers: int) -> Source:
        """Return the warm-ups of a worker, each as soon as a slot is free."""
        return Queue(self.warmups[worker::workers])


def prepare(target: Target, plan: LoadPlan) -> Workload:
    """Render every request of a plan. Asks the server's tokenizer.

    Raises LaunchError when that fails, ConfigError for a file that does not hold what is asked.
    """
    rng = np.random.default_rng(plan.seed)
    if isinstance(plan.workload, FileWorkload):
        found = replay(target, plan, plan.workload)
        offsets = offsets_ns(plan.arrival, plan.requests, rng, found.times_s)
        return Workload(plan, found.warmups, found.measured, found.lengths, offsets)
    if isinstance(plan.workload, MultiTurn):
        return _conversations(target, plan, plan.workload, rng)
    return _random(target, plan, plan.workload, rng)


def _own_lengths(plan: LoadPlan) -> tuple[Lengths, Lengths]:
    assert plan.isl is not None and plan.osl is not None  # the plan's own rule, where no file has lengths
    return uniform(plan.isl, plan.range_ratio), uniform(plan.osl, plan.range_ratio)


def _draw(inputs: Lengths, outputs: Lengths, count: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Draw input and output lengths. Raises ConfigError for more tokens than a client can hold."""
    isl, osl = draw_lengths(inputs, count, rng), draw_lengths(outputs, count, rng)
    if (tokens := int(isl.sum() + osl.sum())) > MAX_TOKENS:
        raise ConfigError(
            f"{tokens:,} tokens in {count:,} requests; at most {MAX_TOKENS:,}",
            fix="ask for fewer or shorter requests",
        )
    return isl.tolist(), osl.tolist()


def _random(target: Target, plan: LoadPlan, asked: RandomTokens, rng: np.random.Generator) -> Workload:
    own_input, own_output = _own_lengths(plan)
    inputs, outputs = asked.input or own_input, asked.output or own_output
    renderer, prompter = Renderer(target, plan), make_prompter(target, plan.endpoint)
    prompter.require(shortest(inputs), asked.prefix)
    if asked.prefix is not None:
        prompter.share_prefixes(asked.prefix, rng)

    def exchanges(count: int, mark: str) -> list[Exchange]:
        lengths = _draw(inputs, outputs, count, rng)
        return [
            Exchange(index, renderer.prompt(f"{mark}{index}", prompter.new(isl, rng), osl), isl, osl)
            for index, (isl, osl) in enumerate(zip(*lengths, strict=True))
        ]

    measured = exchanges(plan.requests, "")
    warmups = exchanges(plan.warmups, "w")
    return Workload(plan, warmups, measured, prompter.exactness, offsets_ns(plan.arrival, plan.requests, rng))


def _conversations(target: Target, plan: LoadPlan, asked: MultiTurn, rng: np.random.Generator) -> Workload:
    """Each turn adds isl tokens (the first: chat template included) and gets osl; its input holds all before it."""
    inputs, outputs = _own_lengths(plan)
    renderer, prompter = Renderer(target, plan), make_prompter(target, "chat")
    prompter.require(shortest(inputs), None)
    added, answers = _draw(inputs, outputs, plan.requests, rng)
    thinks = (rng.exponential(asked.think_s, size=plan.requests) * 1e9).astype(np.int64).tolist()
    found = [
        _conversation(range(start, min(start + asked.turns, plan.requests)), added, answers, thinks, prompter, rng)
        for start in range(0, plan.requests, asked.turns)
    ]
    lengths = _draw(inputs, outputs, plan.warmups, rng)
    warmups = [
        Exchange(index, renderer.messages(f"w{index}", [_user(prompter, isl, rng)], osl), isl, osl)
        for index, (isl, osl) in enumerate(zip(*lengths, strict=True))
    ]
    measured = [turn for conversation in found for turn in conversation.turns]
    # Later inputs hold answers, whose text may be read as other tokens than were generated, and more of the template.
    exactness: Exactness = "approximate" if asked.turns > 1 else prompter.exactness
    offsets = offsets_ns(plan.arrival, len(found), rng)
    return Workload(plan, warmups, measured, exactness, offsets, found, renderer)


def _conversation(
    indices: range,
    added: Sequence[int],
    answers: Sequence[int],
    thinks: Sequence[int],
    prompter: Prompter,
    rng: np.random.Generator,
) -> Conversation:
    turns, says = deque[Exchange](), deque[str]()
    history = 0
    for number, index in enumerate(indices):
        isl, osl = added[index], answers[index]
        said = prompter.new(isl, rng) if number == 0 else prompter.piece(isl, rng)
        says.append(str(said))
        turns.append(Exchange(index, b"", history + isl, osl, keep_text=True))
        history += isl + osl
    return Conversation(turns, says, deque(thinks[index] for index in indices))


def _user(prompter: Prompter, length: int, rng: np.random.Generator) -> dict[str, str]:
    return {"role": "user", "content": str(prompter.new(length, rng))}
