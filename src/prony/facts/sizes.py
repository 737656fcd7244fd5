"""Parameters, weight bytes and KV bytes of a model, derived from its sizes.

Matrices are counted; norms, biases, routers' correction terms and vision towers are not (below 1 % of any model here).
Formulas: the projections as the models' reference code declares them (Hugging Face transformers: modeling_llama,
modeling_deepseek_v3, modeling_deepseek_v4, modeling_glm_moe_dsa, modeling_qwen3_5_moe; Kimi Linear, arXiv 2510.26692).
"""

from dataclasses import dataclass, fields
from functools import cache

from prony.facts.models import Component, Known, Model, Scheme, Shape

# Bits of a weight with its share of the scales: block formats carry one scale a block (OCP MX v1.0: 8 bits for 32
# values; NVFP4: 8 for 16; int4-g32: 16 for 32; 128 x 128 blocks: 32 bits for 16384; Q4_1: two of 16 bits for 32).
BITS: dict[Scheme, float] = {
    "bf16": 16,
    "fp8": 8,
    "fp8-channel": 8,
    "fp8-block128": 8 + 32 / 128**2,
    "mxfp8": 8 + 8 / 32,
    "mxfp4": 4 + 8 / 32,
    "nvfp4": 4 + 8 / 16,
    "int4-g32": 4 + 16 / 32,
    "q4_1": 4 + 2 * 16 / 32,
}
LEAST_BITS = 4.0
"""For a component whose format nobody tells: no checkpoint here has fewer."""
STATE_BYTES = 2
"""Of one number of a linear attention's state: bfloat16 at least, float32 with some engines."""
INDEX_BYTES = 1
"""Of one number of an indexer's keys: FP8 (DeepSeek-V3.2)."""


@dataclass(frozen=True)
class Parameters:
    """Weights by component. nextn is that of all next-token layers, its experts apart."""

    attention: int
    linear_attention: int
    dense_mlp: int
    routed_experts: int
    shared_expert: int
    embeddings: int
    head: int
    nextn: int
    nextn_experts: int

    @property
    def total(self) -> int:
        """All of them, next-token layers too."""
        return sum(getattr(self, field.name) for field in fields(self))

    @property
    def main(self) -> int:
        """All but the next-token layers."""
        return self.total - self.nextn - self.nextn_experts


@cache
def parameters(name: str) -> Parameters | None:
    """Return a shipped model's parameters by the model's name; None where a size that they need is not known."""
    from prony.facts.models import shipped_models

    model = next(model for model in shipped_models() if model.name == name)
    try:
        return parameters_of(model)
    except TypeError:  # a size that the formulas multiply is None
        return None


def parameters_of(model: Model) -> Parameters:
    """Return a model's parameters. Raises TypeError where a size is not known."""
    shape = model.shape
    layers, hidden, vocab = _int(shape.num_hidden_layers), _int(shape.hidden_size), _int(shape.vocab_size)
    softmax_layers = layers - shape.linear_attention_layers
    expert_layers = layers - shape.dense_layers if shape.n_routed_experts else 0
    one_attention, one_shared, experts = _attention(model), _shared(shape), _experts(shape)
    nextn = shape.num_nextn_predict_layers or 0
    return Parameters(
        attention=softmax_layers * one_attention + _compression(shape),
        linear_attention=shape.linear_attention_layers * _linear(shape) if shape.linear_attention else 0,
        dense_mlp=_dense(shape, layers - expert_layers) + expert_layers * _routing(shape),
        routed_experts=expert_layers * experts,
        shared_expert=expert_layers * one_shared,
        embeddings=vocab * hidden,
        head=0 if shape.tie_word_embeddings else vocab * hidden,
        nextn=nextn * (one_attention + one_shared + _routing(shape) + 2 * hidden**2),
        nextn_experts=nextn * experts,
    )


def _int(value: int | None) -> int:
    if value is None:
        raise TypeError("not known")
    return value


def _attention(model: Model) -> int:
    """Return the projections of one softmax attention layer."""
    shape = model.shape
    hidden, heads = _int(shape.hidden_size), _int(shape.num_attention_heads)
    if model.attention == "gqa":
        width = _int(shape.head_dim)
        queries = heads * width * (2 if shape.attention_output_gate else 1)
        return hidden * (queries + 2 * _int(shape.num_key_value_heads) * width + heads * width)
    ranks = _int(shape.q_lora_rank)
    if model.attention == "csa-hca":
        width, groups, rank = _int(shape.head_dim), _int(shape.o_groups), _int(shape.o_lora_rank)
        return hidden * ranks + ranks * heads * width + hidden * width + heads * width * rank + groups * rank * hidden
    nope, rope, values = _int(shape.qk_nope_head_dim), _int(shape.qk_rope_head_dim), _int(shape.v_head_dim)
    latent = _int(shape.kv_lora_rank)
    down = hidden * (ranks + latent + rope)
    up = ranks * heads * (nope + rope) + latent * heads * (nope + values)
    return down + up + heads * values * hidden * (2 if shape.attention_output_gate else 1)


def _compression(shape: Shape) -> int:
    """Return indexers and compressors of all layers. One that overlaps (CSA) has keys of twice the width."""
    indexer = 0
    if shape.index_layers:
        hidden, width, heads = _int(shape.hidden_size), _int(shape.index_head_dim), _int(shape.index_n_heads)
        keys = 4 * width if shape.csa_layers else width
        indexer = shape.index_layers * (_int(shape.q_lora_rank) * heads * width + hidden * (keys + heads))
    if not shape.csa_layers:
        return indexer
    one = 2 * _int(shape.hidden_size) * _int(shape.head_dim)
    return indexer + one * (2 * shape.csa_layers + shape.hca_layers)


def _linear(shape: Shape) -> int:
    """Return the projections and the convolution of one linear attention layer."""
    hidden, heads = _int(shape.hidden_size), _int(shape.linear_num_value_heads)
    keys = _int(shape.linear_num_key_heads) * _int(shape.linear_key_head_dim)
    values = heads * _int(shape.linear_value_head_dim)
    kernel = _int(shape.linear_conv_kernel_dim) * (2 * keys + values)
    if shape.linear_attention == "gated-delta":  # in_proj_qkv, in_proj_z, in_proj_b, in_proj_a, out_proj
        return hidden * (2 * keys + 2 * values + 2 * heads) + values * hidden + kernel
    width = _int(shape.linear_key_head_dim)  # KDA: q, k, v, a full gate, beta, a decay of low rank, out
    return hidden * (2 * keys + 2 * values + heads + width) + width * keys + values * hidden + kernel


def _dense(shape: Shape, layers: int) -> int:
    return layers * 3 * _int(shape.hidden_size) * _int(shape.intermediate_size) if layers else 0


def _routing(shape: Shape) -> int:
    """Return the router, and what leads to experts of another width and back."""
    if not shape.n_routed_experts:
        return 0
    hidden, inner = _int(shape.hidden_size), shape.routed_expert_hidden_size
    return hidden * shape.n_routed_experts + (2 * hidden * inner if inner else 0)


def _experts(shape: Shape) -> int:
    """Return all routed experts of one layer."""
    if not shape.n_routed_experts:
        return 0
    width = shape.routed_expert_hidden_size or _int(shape.hidden_size)
    return shape.n_routed_experts * 3 * width * _int(shape.moe_intermediate_size)


def _shared(shape: Shape) -> int:
    return 3 * _int(shape.hidden_size) * (shape.shared_expert_intermediate_size or 0)


def component_bytes(known: Known, component: Component, count: int) -> int:
    """Return the bytes of some weights of a component; of unknown format: at least so many."""
    scheme = known.checkpoint.components.get(component)
    return int(count * (BITS[scheme] if scheme else LEAST_BITS) / 8)


def weight_bytes(known: Known) -> int | None:
    """Return the bytes of all weights, next-token layers too; None where a size is not known."""
    counted = parameters(known.model.name)
    if counted is None:
        return None
    names: tuple[Component, ...] = (
        "attention", "linear_attention", "dense_mlp", "routed_experts", "shared_expert", "embeddings", "head", "nextn",
    )  # fmt: skip
    main = sum(component_bytes(known, name, getattr(counted, name)) for name in names)
    return main + component_bytes(known, "nextn", counted.nextn_experts)


@dataclass(frozen=True)
class KvBytes:
    """KV on one device: bytes per token, and bytes of a request whatever its length (windows, states)."""

    per_token: float
    per_request: float

    def of(self, tokens: int) -> float:
        """Return the bytes of a request of so many tokens."""
        return self.per_request + tokens * self.per_token


def kv_bytes(model: Model, value_bytes: float, shards: int = 1, layers: int | None = None) -> KvBytes:
    """Return the KV of one device when attention is split over `shards`; layers: None for all, 1 for one drafter's.

    GQA splits by KV heads down to one, a latent KV not at all. Raises TypeError where a size is not known.
    """
    shape = model.shape
    if model.attention == "csa-hca":
        return _compressed_kv(shape, value_bytes)
    count = layers or _int(shape.num_hidden_layers) - shape.linear_attention_layers - shape.sliding_window_layers
    if model.attention == "mla":
        width = (_int(shape.kv_lora_rank) + _int(shape.qk_rope_head_dim)) * value_bytes
        keys = shape.index_layers * (shape.index_head_dim or 0) * INDEX_BYTES if layers is None else 0
        return KvBytes(count * width + keys, _state(shape, shards) if layers is None else 0)
    heads = max(1, _int(shape.num_key_value_heads) // shards)
    width = 2 * heads * _int(shape.head_dim) * value_bytes
    windows = shape.sliding_window_layers * (shape.sliding_window or 0) * width
    return KvBytes(count * width, windows + _state(shape, shards) if layers is None else 0)


def _compressed_kv(shape: Shape, value_bytes: float) -> KvBytes:
    """One entry stands for csa_ratio or hca_ratio tokens; every layer keeps a window as it is (DeepSeek-V4, 2.3)."""
    width = _int(shape.head_dim) * value_bytes
    sparse = shape.csa_layers * (width + (shape.index_head_dim or 0) * INDEX_BYTES) / _int(shape.csa_ratio)
    dense = shape.hca_layers * width / _int(shape.hca_ratio)
    return KvBytes(sparse + dense, _int(shape.num_hidden_layers) * (shape.sliding_window or 0) * width)


def _state(shape: Shape, shards: int) -> float:
    """Return the states of all linear attention layers: a matrix a head, and the convolution's last inputs."""
    if not shape.linear_attention_layers:
        return 0
    values, keys = _int(shape.linear_num_value_heads), _int(shape.linear_num_key_heads)
    width, height = _int(shape.linear_key_head_dim), _int(shape.linear_value_head_dim)
    window = (_int(shape.linear_conv_kernel_dim) - 1) * (2 * keys * width + values * height)
    return shape.linear_attention_layers * (values * width * height + window) * STATE_BYTES / shards
