"""The merged leaves of one point, read as typed values: names found, expressions computed, places kept."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from prony.base.errors import ConfigError
from prony.facts.curves import Curve
from prony.recipe.acceptance import Drafting, golden, mode_of
from prony.recipe.deployment import EnvVar, ModelFile, ModelRef, Patch, Probe, SpecDecode, SpecOption
from prony.recipe.engines.flags import Arg, Flag, Kind
from prony.recipe.intent import Intent, OffloadIntent, RouterIntent
from prony.recipe.leaves import Leaf, Leaves, Path
from prony.recipe.model import Recipe, seconds_of
from prony.recipe.when import Purpose, numbers
from prony.spec.expression import evaluate_whole, substitute
from prony.spec.point import Point

MAX_RANGE = 4096
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


class Layers:
    """All that recipe files say of one point."""

    def __init__(self, merged: Leaves, recipe: Recipe, point: Point, purpose: Purpose) -> None:
        self.merged = merged
        self.recipe = recipe
        self.point = point
        self.purpose = purpose
        self.numbers = numbers(point)

    def leaf(self, name: str) -> Leaf | None:
        """Return a leaf that is set and not deleted."""
        leaf = self.merged.get(tuple(name.split(".")))
        return leaf if leaf is not None and leaf.value is not None else None

    def get(self, name: str) -> Any:
        """Return a leaf's value, None where it is not set."""
        leaf = self.leaf(name)
        return leaf.value if leaf else None

    def place(self, name: str) -> str:
        """Return file:line of a leaf, or the recipe's file when the leaf isn't set."""
        leaf = self.leaf(name)
        return leaf.place if leaf else self.recipe.file

    def required(self, name: str) -> str:
        """Return a leaf's text. Raises ConfigError when it is not set."""
        value = self.get(name)
        if value is None:
            raise ConfigError(
                f"{self.recipe.file} recipe {self.recipe.name}: '{name}' is missing",
                fix=f"add '{name}: …' here or in a parent",
            )
        return str(value)

    def count(self, name: str) -> int | None:
        """Return an integer leaf with its expression computed."""
        leaf = self.leaf(name)
        if leaf is None:
            return None
        with at(leaf):
            return evaluate_whole(str(leaf.value), self.numbers)

    def at_least(self, name: str, least: int, default: int | None = None) -> int | None:
        """Return a count that is not below `least`."""
        value = self.count(name)
        if value is not None and value < least:
            raise ConfigError(f"{self.place(name)}: {name} is {value}", allowed=f"{least} or more")
        return default if value is None else value

    def intent(self, curves: Sequence[Curve]) -> Intent:
        """Return what the engine is asked for."""
        model = ModelRef(
            id=self.get("model.id") or self.point.model,
            revision=self.get("model.revision"),
            location=self.get("model.location") or "none",
            files=tuple(ModelFile.model_validate(file) for file in self.get("model.files") or ()),
        )
        return Intent(
            image=self.point.image,
            model=model,
            served_model=self.get("served_model") or self.point.model,
            pools=self.point.topology.pools,
            concurrency=self.point.concurrency,
            place=self.place("engine"),
            spec=self.spec(curves),
            spec_place=self.place("spec.method"),
            offload=self.offload(),
            kv_transfer=self.point.kv_transfer,
            router=self.router(),
            context=self.at_least("context", 1),
            graph_batch=self.at_least("graph_batch", 1),
        )

    def spec(self, curves: Sequence[Curve]) -> SpecDecode | None:
        """Return speculative decoding, with the acceptance that the point and the purpose imply."""
        method = self.leaf("spec.method")
        if method is None:
            return None
        steps = self.at_least("spec.steps", 1)
        if steps is None:
            raise ConfigError(f"{method.place}: spec.steps must be 1 or more tokens", fix="add 'steps: 3' to spec")
        topk = self.at_least("spec.topk", 1, 1) or 1
        draft_tokens = self.at_least("spec.draft_tokens", 1, steps + 1) or 1
        if topk == 1 and draft_tokens != steps + 1:
            raise ConfigError(
                f"{self.place('spec.draft_tokens')}: {draft_tokens} draft tokens, but a chain of {steps} steps "
                f"verifies {steps + 1}",
                fix="leave draft_tokens out",
            )
        asked = SpecDecode(
            method=method.value,
            steps=steps,
            draft_tokens=draft_tokens,
            topk=topk,
            draft_model=self.get("spec.draft_model"),
            draft_sample=self.get("spec.draft_sample"),
            rejection=self.get("spec.rejection"),
            options=tuple(SpecOption(name=name, value=leaf.value) for name, leaf in self._below("spec", "options")),
        )
        if mode_of(self.point, self.purpose, self.get("spec.acceptance")) == "real":
            return asked
        found = golden(curves, self.get("model.id") or self.point.model, self._drafting(asked, method))
        told = {"acceptance_length": found.length, "curve": found.curve.name, "curve_digest": found.curve.digest}
        return asked.model_copy(update={"acceptance": "golden", **told})

    def _drafting(self, asked: SpecDecode, method: Leaf) -> Drafting:
        own = asked.draft_model if asked.draft_model not in (None, "self") else "self"
        drafter = self.get("spec.drafter") or own
        return Drafting(asked, str(drafter), self.get("spec.thinking") or "on", method.place)

    def offload(self) -> OffloadIntent | None:
        """Return KV offload as the point asks for it, with the recipe's ratio."""
        offload = self.point.kv_offload
        if offload.mode == "none":
            return None
        leaf = self.leaf("kv_offload.ratio")
        place = self.place("kv_offload.ratio")
        ratio = self.words(leaf)[0] if leaf else None
        return OffloadIntent(offload.backend or "", self.point.cpu_dram_gb, ratio, place)

    def router(self) -> RouterIntent | None:
        """Return what stands before the workers: the recipe's, which must be the one that the point names."""
        leaf = self.leaf("topology.router.kind")
        if leaf is None:
            return None
        return RouterIntent(str(leaf.value), self.args("router"), leaf.place)

    def flags(self) -> tuple[Flag, ...]:
        """Return the flags that the recipe says its image has beyond the table."""
        return tuple(
            Flag(name, cast(Kind, leaf.value), f"said at {leaf.place}", many=True)
            for name, leaf in self._below("flags")
        )

    def _below(self, *path: str) -> list[tuple[str, Leaf]]:
        """Return the leaves right below a path by name, deleted ones left out."""
        found = {key[-1]: leaf for key, leaf in self.merged.items() if _is_child(key, path)}
        return [(name, leaf) for name, leaf in sorted(found.items()) if leaf.value is not None]

    def patches(self) -> tuple[Patch, ...]:
        """Return the changes to the image's own files."""
        return tuple(Patch.model_validate(patch) for patch in self.get("patches") or ())

    def of_role(self, role: str, kind: str) -> dict[str, Leaf]:
        """Return the args or env of a role, by name: the role's own over those of `all` over the top level's."""
        prefixes: tuple[Path, ...] = ((kind,), ("roles", "all", kind), ("roles", role, kind))
        if role == "router":
            prefixes = (("topology", "router", kind),)
        found: dict[str, Leaf] = {}
        for prefix in prefixes:
            found |= {path[-1]: leaf for path, leaf in self.merged.items() if _is_child(path, prefix)}
        return {name: leaf for name, leaf in sorted(found.items()) if leaf.value is not None}

    def args(self, role: str) -> tuple[Arg, ...]:
        """Return a role's arguments, expressions computed."""
        return tuple(Arg(name, self.words(leaf), leaf.place) for name, leaf in self.of_role(role, "args").items())

    def env(self, role: str, added: Sequence[EnvVar] = ()) -> tuple[EnvVar, ...]:
        """Return a role's environment with what the engine adds. Raises ConfigError for a name that both set."""
        items = self.of_role(role, "env")
        for one in added:
            if one.name in items:
                raise ConfigError(
                    f"{items[one.name].place}: {one.name} is not set by hand: it comes from what the recipe asks for",
                    fix="delete this line",
                )
        own = [EnvVar(name=name, value=self.words(leaf)[0]) for name, leaf in items.items()]
        return tuple(sorted((*own, *added), key=lambda one: one.name))

    def words(self, leaf: Leaf) -> tuple[str, ...]:
        """Return the values of an argument as text; none for a bare flag."""
        if leaf.value is True:
            return ()
        values = leaf.value if isinstance(leaf.value, list) else [leaf.value]
        with at(leaf):
            return tuple(word for value in values for word in _spread(substitute(str(value), self.numbers)))

    def probe(self, path: str) -> Probe:
        """Return when a role is ready; path: the engine's own."""
        timeout = self.get("ready.timeout")
        return Probe(
            path=self.get("ready.path") or path,
            timeout_s=seconds_of(timeout) if timeout else Probe().timeout_s,
        )


@contextlib.contextmanager
def at(leaf: Leaf) -> Iterator[None]:
    """Put file:line of a leaf before the message of a ConfigError."""
    try:
        yield
    except ConfigError as error:
        message = f"{leaf.place} {leaf.name}: {error.message}"
        raise ConfigError(message, allowed=error.allowed, fix=error.fix) from None


def _spread(text: str) -> Iterable[str]:
    """Return the words of a value: `1..128` is every number from 1 to 128."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return (text,)
    first, last = int(match[1]), int(match[2])
    if not 0 <= last - first < MAX_RANGE:
        raise ConfigError(f"'{text}' is no range", allowed=f"FIRST..LAST, ascending, up to {MAX_RANGE} numbers")
    return (str(number) for number in range(first, last + 1))


def _is_child(path: Path, parent: Path) -> bool:
    return len(path) == len(parent) + 1 and path[: len(parent)] == parent
