"""What several engines' renderers share: which flags a recipe set itself, who serves the model, JSON arguments."""

from collections.abc import Iterable

import orjson

from prony.base.errors import ConfigError
from prony.recipe.deployment import ModelRef
from prony.recipe.intent import Intent, RoleIntent
from prony.spec.point import RolePool

HOST = "127.0.0.1"
PRONY = "prony itself"


def model_argument(model: ModelRef) -> str:
    """Return what an engine is told to load: the folder where the files are known, else the id."""
    return model.id if model.location == "none" else "{model_dir}"


def has(role: RoleIntent, *names: str) -> bool:
    """Say whether the recipe sets one of some flags itself."""
    return any(arg.name in names for arg in role.args)


def unless_set(role: RoleIntent, name: str, value: object | None) -> tuple[str, ...]:
    """Return `--name value` unless there is no value or the recipe says it itself."""
    return () if value is None or has(role, name) else (f"--{name}", str(value))


def json_argument(**values: object) -> str:
    """Return compact JSON, keys in the order given."""
    return orjson.dumps(values).decode()


def sizes(pairs: Iterable[tuple[str, int | None]], least: int = 2) -> tuple[str, ...]:
    """Return `--name size` for each size from `least` on: 1 is every engine's default."""
    return tuple(word for name, size in pairs if size and size >= least for word in (f"--{name}", str(size)))


def refuse(intent: Intent, engine: str, **unsupported: bool) -> None:
    """Raise ConfigError for the first thing that the point asks for and the engine cannot do."""
    for what, asked in unsupported.items():
        if asked:
            raise ConfigError(
                f"{intent.place}: {engine} cannot do {what.replace('_', ' ')}, which the point asks for",
                fix="mend the search space in the master config: a label must equal what runs",
            )


def devices_of_node(pool: RolePool) -> int:
    """Return how many devices of a pool share one node's host memory."""
    return max(1, pool.gpus // max(1, pool.nodes or 1))


def draft_model_of(intent: Intent) -> str | None:
    """Return the model that drafts, None for the checkpoint's own head."""
    model = intent.spec.draft_model if intent.spec else None
    return None if model in (None, "self") else model
