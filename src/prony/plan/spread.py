"""How a pool's replica is spread over devices, and what each device then holds of a model."""

from dataclasses import dataclass
from functools import cache

from prony.facts.models import Component, Known
from prony.facts.sizes import KvBytes, component_bytes, kv_bytes, parameters
from prony.spec.point import RolePool

_DENSE: tuple[Component, ...] = ("dense_mlp", "shared_expert", "embeddings", "head")
_SPLIT: tuple[Component, ...] = ("attention", "linear_attention")


@dataclass(frozen=True)
class Spread:
    """One replica. attention: devices that share one attention; experts: devices that share all experts.

    ranks: attentions that serve different requests side by side; stages: of the pipeline; width: devices that share one
    expert; context: devices that share one request's KV.
    """

    attention: int
    experts: int
    ranks: int
    stages: int
    width: int
    context: int

    @property
    def text(self) -> str:
        """The spread in short, for messages."""
        parts = [f"attention TP{self.attention}", f"experts over {self.experts}"]
        parts += [f"PP{self.stages}"] if self.stages > 1 else []
        return ", ".join(parts)


def spread_of(pool: RolePool) -> Spread:
    """Return how a replica is spread: DP attention keeps TP for the experts and gives each device its own attention.

    Some labels name one device of a wide replica (tp 1, ep 8): the experts tell its width then.
    """
    expert_parallel = pool.ep or 1
    devices = max(pool.tp * pool.dp * pool.pcp, expert_parallel)
    attention = 1 if pool.dp_attention else pool.tp
    experts = devices if expert_parallel > 1 or pool.pcp > 1 else pool.tp
    ranks = max(1, devices // (attention * pool.pcp))
    return Spread(attention, experts, ranks, pool.pp, max(1, experts // expert_parallel), pool.dcp)


@dataclass(frozen=True)
class Held:
    """Bytes on one device: weights without drafting, and what a draft layer adds."""

    weights: int
    draft: int


@cache
def held(model_id: str, spread: Spread) -> Held | None:
    """Return what a device holds of a known model, at least; None where its sizes are not known.

    Attention is split over its devices, other dense parts over the whole replica (the most that an engine does).
    """
    known = _known(model_id)
    counted = parameters(known.model.name) if known else None
    if known is None or counted is None:
        return None
    whole = max(spread.attention, spread.experts)
    attention = sum(component_bytes(known, name, getattr(counted, name)) for name in _SPLIT)
    dense = sum(component_bytes(known, name, getattr(counted, name)) for name in _DENSE)
    experts = component_bytes(known, "routed_experts", counted.routed_experts)
    weights = attention / spread.attention + dense / whole + experts / spread.experts
    draft = component_bytes(known, "nextn", counted.nextn) / spread.attention
    draft += component_bytes(known, "nextn", counted.nextn_experts) / spread.experts
    return Held(int(weights / spread.stages), int(draft))


@cache
def kv_held(model_id: str, spread: Spread, value_bytes: float, drafting: bool) -> KvBytes | None:
    """Return the KV that a device holds, of the draft layer too where it drafts; None where sizes are not known."""
    known = _known(model_id)
    if known is None:
        return None
    try:
        main = kv_bytes(known.model, value_bytes, spread.attention)
        drafts = known.shape.num_nextn_predict_layers or 0
        more = kv_bytes(known.model, value_bytes, spread.attention, drafts).per_token if drafting and drafts else 0
    except TypeError:  # a size that the formulas multiply is None
        return None
    share = spread.stages * spread.context
    return KvBytes((main.per_token + more) / share, main.per_request / share)


def _known(model_id: str) -> Known | None:
    from prony.facts.models import known_model

    return known_model(model_id)
