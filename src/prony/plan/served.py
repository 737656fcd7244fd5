"""How a point is launched, as far as recipes tell, and one pool of it as feasibility rules look at it."""

import re
from dataclasses import dataclass, field
from functools import cached_property

from prony.base.errors import ConfigError
from prony.facts.models import Known, known_model
from prony.facts.skus import Sku, sku, sku_of_runner
from prony.plan.spread import Held, Spread, held, kv_held, spread_of
from prony.recipe.catalogue import Catalogue
from prony.recipe.deployment import Deployment, Role
from prony.recipe.labels import engine_of_framework
from prony.recipe.resolve import resolve
from prony.spec.point import FixedSeqLen, Point, RolePool

_FRACTIONS = ("mem-fraction-static", "gpu-memory-utilization")
_LIMITS = ("max-running-requests", "max-num-seqs", "max-batch-size")


@dataclass(frozen=True)
class Served:
    """The deployment of a point; where there is none, why: no recipe is there (missing), or one refuses it (refused).

    fix: what the refusal advises.
    """

    deployment: Deployment | None = None
    missing: str = ""
    refused: str = ""
    fix: str = ""


def serve(catalogue: Catalogue, point: Point) -> Served:
    """Resolve a point, and tell a refusal instead of raising it."""
    try:
        recipe = catalogue.find(point.config_key)
    except ConfigError as error:
        return Served(missing=error.message)
    try:
        return Served(deployment=resolve(catalogue, point))
    except ConfigError as error:
        if recipe.name in catalogue.shipped:  # it was not written for this point: its launch is some other one
            return Served(missing=f"the shipped one refuses it: {error.message}")
        return Served(refused=error.message, fix=error.fix or "mend the recipe or the master config")


@dataclass(frozen=True)
class Case:
    """One pool of a point, with what is known of its model, device and launch."""

    point: Point
    pool: RolePool
    served: Served
    spread: Spread = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spread", spread_of(self.pool))

    @cached_property
    def engine(self) -> str:
        """The engine that serves, also behind Dynamo or llm-d."""
        deployment = self.served.deployment
        name = deployment.engine if deployment else engine_of_framework(self.point.framework)
        return {"trt": "trtllm"}.get(name := name.rpartition("-")[2], name)

    @cached_property
    def sku(self) -> Sku | None:
        """The device, or None for a runner whose name tells none."""
        try:
            return sku(sku_of_runner(self.pool.hardware or self.point.runner))
        except ConfigError:
            return None

    @cached_property
    def known(self) -> Known | None:
        """What is known of the model."""
        return known_model(self.point.model)

    @cached_property
    def role(self) -> Role | None:
        """The process of this pool; None without a recipe."""
        roles = self.served.deployment.roles if self.served.deployment else ()
        return next((role for role in roles if role.name == self.pool.role), None)

    @cached_property
    def flags(self) -> dict[str, str]:
        """Flags of the process without their dashes, `_` told as `-`; empty text for a bare one."""
        found: dict[str, str] = {}
        words = self.role.argv if self.role else ()
        for word, following in zip(words, (*words[1:], "--"), strict=False):
            if word.startswith("--"):
                name, equals, value = word[2:].partition("=")
                found[name.replace("_", "-")] = value if equals or following.startswith("--") else following
        return found

    @cached_property
    def env(self) -> dict[str, str]:
        """Variables of the process."""
        return {one.name: one.value for one in self.role.env} if self.role else {}

    @cached_property
    def held(self) -> Held | None:
        """Weights on one device, at least."""
        return held(self.point.model, self.spread)

    @property
    def drafting(self) -> bool:
        """The checkpoint's own next-token layer drafts."""
        deployment = self.served.deployment
        own = deployment is None or deployment.spec is None or deployment.spec.draft_model in (None, "self")
        layers = self.known.shape.num_nextn_predict_layers if self.known else None
        return self.point.spec_decoding == "mtp" and own and bool(layers)

    @cached_property
    def context(self) -> int | None:
        """Tokens that one request has here at its end; None where the workload does not tell."""
        workload = self.point.workload
        if not isinstance(workload, FixedSeqLen):
            return None
        return workload.isl if self.pool.role == "prefill" else workload.isl + workload.osl

    @property
    def requests(self) -> int:
        """Requests that one attention holds when the asked concurrency is spread evenly."""
        return -(-self.point.concurrency // (max(1, self.pool.replicas) * self.spread.ranks))

    def kv_of_request(self, drafting: bool = False) -> float | None:
        """Return the KV bytes of one request on a device; None where they cannot be told."""
        kv = kv_held(self.point.model, self.spread, self.kv_value_bytes, drafting)
        return kv.of(self.context) if kv and self.context else None

    @cached_property
    def kv_value_bytes(self) -> float:
        """Bytes of a number in the KV cache: as its flag says, else the least that is usual."""
        kind = self.flags.get("kv-cache-dtype", "")
        if re.match(r"(nv)?(mx)?fp4", kind):
            return 0.5
        return 2 if kind in ("bf16", "bfloat16", "fp16", "float16", "half") else 1

    def fraction(self, otherwise: float) -> float:
        """Return the share of a device's memory that the engine may take."""
        stated = next((self.flags[name] for name in _FRACTIONS if name in self.flags), "")
        try:
            share = float(stated)
        except ValueError:
            return otherwise
        return share if 0 < share <= 1 else otherwise

    @cached_property
    def limit(self) -> tuple[str, int] | None:
        """The flag that limits requests of one replica, and how many it lets in; None where none does.

        SGLang counts those of all ranks, the others those of each.
        """
        for name in _LIMITS:
            if self.flags.get(name, "").isdigit():
                each = 1 if self.engine == "sglang" else self.spread.ranks
                return f"--{name}", int(self.flags[name]) * each
        return None
