"""Models as their config.json describes them, and their checkpoints: which format each component's weights have."""

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from prony.base.errors import ConfigError
from prony.base.model import Frozen
from prony.base.validate import validate
from prony.base.yamldoc import YamlMap, load_yaml

Attention = Literal["gqa", "mla", "csa-hca"]
"""Grouped queries; a latent KV (DeepSeek-V2); compressed sparse beside heavily compressed KV (DeepSeek-V4)."""
LinearAttention = Literal["gated-delta", "kda"]
Component = Literal[
    "attention", "linear_attention", "dense_mlp", "routed_experts", "shared_expert", "embeddings", "head", "nextn"
]
Scheme = Literal["bf16", "fp8", "fp8-channel", "fp8-block128", "mxfp8", "mxfp4", "nvfp4", "int4-g32", "q4_1"]


class Shape(Frozen):
    """Fields of config.json under one name each; None: the model has no such part, or nobody tells.

    Layers are counts: dense_layers have a dense MLP where others have experts (first_k_dense_replace), index_layers an
    indexer of their own, sliding_window_layers keep the last sliding_window tokens. shared_expert_intermediate_size:
    of all shared experts together. routed_expert_hidden_size: the width that routed experts see, where it is not
    hidden_size. total_parameters: as published, next-token layers apart, to check the formulas against; nothing is
    derived from it.
    """

    hidden_size: int | None = None
    num_hidden_layers: int | None = None
    vocab_size: int | None = None
    tie_word_embeddings: bool = False
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    attention_output_gate: bool = False
    sliding_window: int | None = None
    sliding_window_layers: int = 0
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    o_groups: int | None = None
    o_lora_rank: int | None = None
    csa_layers: int = 0
    csa_ratio: int | None = None
    hca_layers: int = 0
    hca_ratio: int | None = None
    index_layers: int = 0
    index_n_heads: int | None = None
    index_head_dim: int | None = None
    linear_attention: LinearAttention | None = None
    linear_attention_layers: int = 0
    linear_num_value_heads: int | None = None
    linear_num_key_heads: int | None = None
    linear_key_head_dim: int | None = None
    linear_value_head_dim: int | None = None
    linear_conv_kernel_dim: int | None = None
    intermediate_size: int | None = None
    dense_layers: int = 0
    n_routed_experts: int | None = None
    num_experts_per_tok: int | None = None
    moe_intermediate_size: int | None = None
    routed_expert_hidden_size: int | None = None
    shared_expert_intermediate_size: int | None = None
    num_nextn_predict_layers: int | None = None
    total_parameters: int | None = None


class Block(Shape):
    """Fields that stand in one source."""

    source: str = Field(min_length=1)


class Checkpoint(Frozen):
    """Weights of one model. models: globs over its ids, letter case aside.

    quant_method: as quantization_config names it, `none` where there is none. components: the format of each; None
    where nobody tells. published_bytes: size of the weight files, to check the formulas against.
    """

    models: tuple[str, ...] = Field(min_length=1)
    quant_method: str | None
    components: dict[Component, Scheme | None]
    source: str = Field(min_length=1)
    published_bytes: int | None = None

    def serves(self, model: str) -> bool:
        """Say whether an id is of this checkpoint."""
        return any(fnmatchcase(model.lower(), glob.lower()) for glob in self.models)


class Model(Frozen):
    """One architecture with all its sizes, and the checkpoints that have them."""

    schema_version: Literal["model/1"] = Field(alias="schema")
    name: str = Field(min_length=1)
    attention: Attention
    facts: tuple[Block, ...]
    checkpoints: tuple[Checkpoint, ...]
    shape: Shape = Shape()
    file: str = ""

    @model_validator(mode="after")
    def _each_fact_once(self) -> Self:
        names = [name for block in self.facts for name in block.model_fields_set if name != "source"]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources for {', '.join(twice)}")
        return self


class Known(Frozen):
    """A model id that is known: its model and its checkpoint."""

    model: Model
    checkpoint: Checkpoint

    @property
    def shape(self) -> Shape:
        """The model's sizes."""
        return self.model.shape


def read_model_facts(document: YamlMap) -> Model:
    """Check the YAML of a model. Raises ConfigError with file:line."""
    model = validate(Model, document, "model")
    merged: dict[str, Any] = {}
    for block in model.facts:
        merged |= block.model_dump(include=block.model_fields_set - {"source"})
    return model.model_copy(update={"shape": Shape(**merged), "file": document.file})


@cache
def shipped_models() -> tuple[Model, ...]:
    """Return the models that come with Prony. Raises ConfigError with file:line, also for an id that two describe."""
    folder = Path(str(files("prony.facts") / "models"))
    models = tuple(read_model_facts(load_yaml(path)) for path in sorted(folder.glob("*.yaml")))
    seen: dict[str, str] = {}
    for model in models:
        for glob in (glob for checkpoint in model.checkpoints for glob in checkpoint.models):
            if glob.lower() in seen:
                raise ConfigError(f"{model.file}: '{glob}' is also in {seen[glob.lower()]}", fix="keep one of them")
            seen[glob.lower()] = model.file
    return models


@cache
def known_model(model_id: str) -> Known | None:
    """Return what is known of a model id, or None."""
    for model in shipped_models():
        for checkpoint in model.checkpoints:
            if checkpoint.serves(model_id):
                return Known(model=model, checkpoint=checkpoint)
    return None
