"""What is known of models: derived counts against published ones, formats, and what nobody tells."""

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.facts.models import Known, known_model, read_model_facts, shipped_models
from prony.facts.sizes import kv_bytes, parameters, weight_bytes

MODELS = {model.name: model for model in shipped_models()}


def known(model: str) -> Known:
    found = known_model(model)
    assert found is not None
    return found


@pytest.mark.parametrize("name", sorted(MODELS))
def test_derived_parameters_are_those_that_the_model_card_tells(name: str) -> None:
    counted = parameters(name)
    published = MODELS[name].shape.total_parameters
    assert counted is not None and published is not None
    assert counted.main == pytest.approx(published, rel=0.018)


def test_derived_bytes_are_those_of_the_weight_files() -> None:
    kimi = known("moonshotai/Kimi-K3")
    assert weight_bytes(kimi) == pytest.approx(kimi.checkpoint.published_bytes, rel=0.002)


def test_a_latent_kv_is_576_numbers_a_layer_and_is_not_split() -> None:
    model = known("deepseek-ai/DeepSeek-R1-0528").model
    assert kv_bytes(model, 1).per_token == 61 * (512 + 64) == kv_bytes(model, 1, shards=8).per_token


def test_grouped_kv_is_split_down_to_one_head() -> None:
    model = known("Qwen/Qwen3.5-397B-A17B").model
    whole = kv_bytes(model, 2).per_token
    assert whole == 15 * 2 * 2 * 256 * 2
    assert kv_bytes(model, 2, shards=2).per_token == whole / 2 == kv_bytes(model, 2, shards=8).per_token


def test_the_new_checkpoint_has_fp8_attention_and_fewer_bytes_than_the_old_one() -> None:
    old, new = known("amd/Qwen3.5-397B-A17B-MXFP4"), known("amd/Qwen3.5-397B-A17B-MXFP4-AttnFP8-V2")
    assert (old.checkpoint.components["linear_attention"], new.checkpoint.components["linear_attention"]) == (
        "bf16",
        "fp8-channel",
    )
    assert new.shape.linear_num_value_heads == 64
    before, after = weight_bytes(old), weight_bytes(new)
    assert before is not None and after is not None and after < before


def test_ids_are_found_whatever_their_letter_case_and_unknown_ones_are_none() -> None:
    written, lower = known("nvidia/DeepSeek-R1-0528-FP4-V2"), known("nvidia/deepseek-r1-0528-fp4-v2")
    assert written == lower
    assert known_model("nobody/has-heard-of-it") is None


def test_a_fact_has_one_source() -> None:
    text = """schema: model/1
name: two
attention: gqa
facts:
- {source: one, hidden_size: 8}
- {source: other, hidden_size: 9}
checkpoints: [{models: [a/b], quant_method: none, components: {attention: bf16}, source: here}]
"""
    with pytest.raises(ConfigError, match="two sources for hidden_size"):
        read_model_facts(parse_yaml(text, "two.yaml"))


def test_an_unknown_field_is_told_with_its_line() -> None:
    text = """schema: model/1
name: x
attention: gqa
facts:
- {source: one}
checkpoints:
- {models: [a/b], quant_method: none, components: {atention: bf16}, source: here}
"""
    with pytest.raises(ConfigError, match=r"x.yaml:7"):
        read_model_facts(parse_yaml(text, "x.yaml"))
