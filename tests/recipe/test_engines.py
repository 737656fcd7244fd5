"""Each engine gets what the labels say: spread, drafting, acceptance, offload, transfer, router."""

import json
from typing import Any

import pytest
import yaml

from prony.base.errors import ConfigError
from prony.recipe.deployment import Deployment, Role
from prony.recipe.engines.flags import Arg, check_args
from prony.recipe.engines.table import ENGINES
from prony.recipe.engines.tables import table, version_in
from prony.recipe.resolve import resolve
from prony.spec.point import AgenticCoding, KvOffload, RolePool, Router, Topology
from tests.recipe.points import catalogue, flags, point

GLM, QWEN, KIMI = "amd/GLM-5.2-MXFP4", "Qwen/Qwen3.5-397B-A17B-FP8", "moonshotai/Kimi-K3"
AGENTIC = {"workload": AgenticCoding(), "spec_decoding": "mtp"}


def built(engine: str, text: str = "", purpose: Any = "throughput", pool: Any = None, **changes: Any) -> Deployment:
    spread = {"tp": 8, **(pool or {})}
    topology = Topology(pools=(RolePool(role="agg", **spread),))
    values = {"framework": engine, "topology": topology, "model": GLM, "runner": "mi355x", **changes}
    recipe = f"schema: 1\nengine: {engine}\nkeys: ['*']\n{text}"
    return resolve(catalogue(case=recipe), point(**values), purpose)


def apart(engine: str, transfer: str, kind: str, text: str = "", **changes: Any) -> Deployment:
    pools = (RolePool(role="prefill", tp=4, replicas=2), RolePool(role="decode", tp=8))
    text += f"topology: {{router: {{kind: {kind}}}}}\n"
    return built(engine, text, topology=Topology(pools=pools), kv_transfer=transfer, **changes)


def args_of(deployment: Deployment, role: str = "agg") -> dict[str, str | bool]:
    return flags(role_of(deployment, role).argv)


def role_of(deployment: Deployment, name: str) -> Role:
    return next(one for one in deployment.roles if one.name == name)


def env_of(deployment: Deployment, role: str = "agg") -> dict[str, str]:
    return {one.name: one.value for one in role_of(deployment, role).env}


MTP3 = "spec: {method: mtp, steps: 3}\n"


@pytest.mark.parametrize(
    ("engine", "pool", "expected"),
    [
        ("vllm", {"ep": 8}, {"tensor-parallel-size": "8", "enable-expert-parallel": True}),
        ("vllm", {"ep": 8, "dp_attention": True}, {"tensor-parallel-size": "1", "data-parallel-size": "8"}),
        ("vllm", {"tp": 4, "pp": 2, "dcp": 4}, {"pipeline-parallel-size": "2", "decode-context-parallel-size": "4"}),
        ("sglang", {"ep": 8, "dp_attention": True}, {"tensor-parallel-size": "8", "data-parallel-size": "8"}),
        ("sglang", {"ep": 4}, {"tensor-parallel-size": "8", "expert-parallel-size": "4"}),
        ("trtllm", {"ep": 8, "dp_attention": True}, {"tp_size": "8", "ep_size": "8"}),
        ("atom", {"ep": 8, "dp_attention": True}, {"enable-expert-parallel": True, "enable-dp-attention": True}),
    ],
)
def test_a_pool_is_spread_in_the_engines_own_words(
    engine: str, pool: dict[str, Any], expected: dict[str, str | bool]
) -> None:
    deployment = built(engine, pool=pool)
    assert expected.items() <= args_of(deployment).items()
    assert deployment.roles[0].gpus == deployment.topology.gpus


def test_one_curve_gives_each_engine_its_own_switch() -> None:
    vllm = json.loads(str(args_of(built("vllm", MTP3, **AGENTIC))["speculative-config"]))
    assert vllm == {
        "method": "mtp",
        "num_speculative_tokens": 3,
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_length": 2.99,
    }
    assert env_of(built("sglang", MTP3, **AGENTIC))["SGLANG_SIMULATE_ACC_LEN"] == "2.99"
    assert env_of(built("trtllm", MTP3, **AGENTIC)) == {"TLLM_SPEC_DECODE_FORCE_NUM_ACCEPTED_TOKENS": "1.99"}
    assert args_of(built("atom", MTP3, **AGENTIC))["spec-decode-acceptance-length"] == "2.99"


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm", "atom"])
def test_evals_and_fixed_lengths_verify_real_drafts(engine: str) -> None:
    for deployment in (built(engine, MTP3, "eval", **AGENTIC), built(engine, MTP3, spec_decoding="mtp")):
        assert deployment.spec and deployment.spec.acceptance == "real"
        text = deployment.model_dump_json()
        assert not any(word in text for word in ("2.99", "1.99", "SIMULATE", "synthetic", 'acceptance-length"'))


def test_a_value_that_was_not_measured_is_an_error_and_never_interpolated() -> None:
    with pytest.raises(ConfigError, match=r"case.yaml:4: curve glm-5.2/mtp has no acceptance length at 9 drafted") as e:
        built("vllm", "spec: {method: mtp, steps: 9}\n", **AGENTIC)
    assert e.value.allowed == "spec.steps: 1, 2, 3, 4, 5, 6, 7, 8"
    with pytest.raises(ConfigError, match="no acceptance curve is of org/unknown with mtp"):
        built("vllm", MTP3, model="org/unknown", **AGENTIC)


def test_two_curves_of_one_model_are_told_apart_by_how_drafts_are_drawn_and_judged() -> None:
    dspark = "spec: {method: dspark, steps: 3, draft_model: Inferact/Kimi-K3-DSpark%s}\n"
    plain = built("vllm", dspark % "", model=KIMI, **AGENTIC)
    block = built("vllm", dspark % ", draft_sample: probabilistic, rejection: block", model=KIMI, **AGENTIC)
    assert plain.spec and plain.spec.acceptance_length == 2.87
    assert block.spec and block.spec.acceptance_length == 3.00
    evaluated = built("vllm", dspark % ", draft_sample: probabilistic, rejection: block", "eval", model=KIMI, **AGENTIC)
    config = json.loads(str(args_of(evaluated)["speculative-config"]))
    assert (config["draft_sample_method"], config["rejection_sample_method"]) == ("probabilistic", "block")
    with pytest.raises(ConfigError, match="rejection None"):
        built("vllm", dspark % ", draft_sample: greedy", model=KIMI, **AGENTIC)


def test_an_older_sglang_that_honours_a_part_of_simulated_acceptance_is_refused() -> None:
    with pytest.raises(ConfigError, match="older than the first SGLang that simulates acceptance as asked"):
        built("sglang", MTP3, image="lmsysorg/sglang:v0.5.14-cu130", **AGENTIC)
    built("sglang", MTP3, image="lmsysorg/sglang:v0.5.16-cu130", **AGENTIC)
    built("sglang", MTP3, "eval", image="lmsysorg/sglang:v0.5.14-cu130", **AGENTIC)


def test_a_chain_verifies_one_token_more_than_it_drafts() -> None:
    with pytest.raises(ConfigError, match="5 draft tokens, but a chain of 3 steps verifies 4"):
        built("sglang", "spec: {method: eagle, steps: 3, draft_tokens: 5}\n", spec_decoding="mtp")
    tree = built("sglang", "spec: {method: eagle, steps: 3, draft_tokens: 8, topk: 2}\n", spec_decoding="mtp")
    assert args_of(tree)["speculative-num-draft-tokens"] == "8"


@pytest.mark.parametrize(
    ("engine", "backend", "expected"),
    [
        ("sglang", "hicache", {"enable-hierarchical-cache": True, "hicache-size": "100"}),
        ("sglang", "mooncake", {"hicache-storage-backend": "mooncake"}),
        ("vllm", "native", {"kv-offloading-size": "800", "kv-offloading-backend": "native"}),
        ("vllm", "lmcache", {"kv-offloading-backend": "lmcache"}),
    ],
)
def test_kv_goes_to_host_memory_in_the_engines_own_words(engine: str, backend: str, expected: dict[str, Any]) -> None:
    offload = KvOffload(mode="dram", backend=backend)
    assert expected.items() <= args_of(built(engine, kv_offload=offload, cpu_dram_gb=800)).items()


def test_vllms_simple_offload_gets_bytes_of_each_rank() -> None:
    offload = KvOffload(mode="dram", backend="vllm-simple")
    config = json.loads(str(args_of(built("vllm", kv_offload=offload, cpu_dram_gb=800))["kv-transfer-config"]))
    assert config["kv_connector"] == "SimpleCPUOffloadConnector"
    assert config["kv_connector_extra_config"] == {"cpu_bytes_to_use_per_rank": 100_000_000_000}


def test_an_offload_that_the_engine_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="vllm has no KV offload backend 'hicache'") as error:
        built("vllm", kv_offload=KvOffload(mode="dram", backend="hicache"), cpu_dram_gb=8)
    assert "native" in error.value.allowed
    with pytest.raises(ConfigError, match=r"kv_offload.tier is 'dram', but sim-a asks for 'none'"):
        built("vllm", "kv_offload: {tier: dram}\n")


def test_sglang_hands_over_kv_and_its_router_knows_every_worker() -> None:
    deployment = apart("sglang", "mori", "sglang-router")
    assert {"disaggregation-mode": "prefill", "disaggregation-transfer-backend": "mori"}.items() <= args_of(
        deployment, "prefill"
    ).items()
    assert args_of(deployment, "decode")["disaggregation-mode"] == "decode"
    words = role_of(deployment, "router").argv
    assert words.count("--prefill") == 2 and "{url:prefill-1}" in words and "{port:prefill-1:bootstrap}" in words
    assert role_of(deployment, "prefill").ports == ("http", "bootstrap")
    assert deployment.entry_role == "router"


def test_vllm_hands_over_kv_by_the_connector_that_the_label_means() -> None:
    deployment = apart("vllm", "nixl", "vllm-router")
    config = json.loads(str(args_of(deployment, "prefill")["kv-transfer-config"]))
    assert config == {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    assert "VLLM_NIXL_SIDE_CHANNEL_PORT" in env_of(deployment, "decode")
    said = 'roles: {decode: {args: {kv-transfer-config: \'{"kv_connector":"MooncakeConnector"}\'}}}\n'
    with pytest.raises(ConfigError, match=r"case.yaml:4: kv-transfer-config names no NixlConnector, which 'nixl'"):
        apart("vllm", "nixl", "vllm-router", said)


def test_workers_without_a_router_and_routers_of_another_name_are_refused() -> None:
    pools = (RolePool(role="prefill", tp=4), RolePool(role="decode", tp=8))
    with pytest.raises(ConfigError, match="nothing stands before the 2 workers") as error:
        built("sglang", topology=Topology(pools=pools), kv_transfer="mori")
    assert "sglang-router" in error.value.allowed
    with pytest.raises(ConfigError, match="sglang has no router 'nginx'"):
        apart("sglang", "mori", "nginx")
    with pytest.raises(ConfigError, match="the router is 'sglang-router', but sim-a names 'atomesh'"):
        apart("sglang", "mori", "sglang-router", router=Router(name="atomesh", version="1"))
    with pytest.raises(ConfigError, match="sglang cannot hand KV over by 'carrier-pigeon'"):
        apart("sglang", "carrier-pigeon", "sglang-router")


def test_dynamo_puts_a_frontend_before_one_worker_too() -> None:
    for engine, worker in (("dynamo-vllm", "dynamo.vllm"), ("dynamo-sglang", "dynamo.sglang")):
        deployment = built(engine, "topology: {router: {kind: dynamo-router}}\n")
        assert worker in deployment.roles[0].argv and "dynamo.frontend" in role_of(deployment, "router").argv
        assert env_of(deployment)["DYN_FILE_KV"] == env_of(deployment, "router")["DYN_FILE_KV"]
    with pytest.raises(ConfigError, match="nothing stands before the 1 workers"):
        built("dynamo-vllm")


def test_trtllm_gets_a_file_of_options_with_what_the_recipe_adds() -> None:
    text = "graph_batch: 64\nroles: {agg: {args: {config.kv_cache_config.dtype: fp8, config.moe_config.backend: TRTLLM,"
    text += " config.kv_cache_config.enable_block_reuse: 'false', max_num_tokens: 8192}}}\n" + MTP3
    deployment = built("trtllm", text, pool={"dp_attention": True}, spec_decoding="mtp")
    (file,) = deployment.roles[0].files
    options = yaml.safe_load(file.text)
    assert options["kv_cache_config"] == {"dtype": "fp8", "enable_block_reuse": False}
    assert options["speculative_config"] == {"decoding_type": "MTP", "num_nextn_predict_layers": 3}
    assert options["enable_attention_dp"] is True and options["cuda_graph_config"]["max_batch_size"] == 64
    assert args_of(deployment)["config"] == f"{{file:{file.name}}}"
    with pytest.raises(ConfigError, match=r"'config.enable_attention_dp' is not set in args: it comes from topology"):
        built("trtllm", "roles: {agg: {args: {config.enable_attention_dp: 'true'}}}\n")


def test_a_typed_thing_written_as_a_flag_is_refused_with_where_it_belongs() -> None:
    for engine, arg, owner in (
        ("vllm", "speculative-config: x", "spec.method"),
        ("sglang", "tp-size: 4", "topology"),
        ("sglang", "speculative-num-steps: 3", "spec.steps"),
        ("atom", "spec-decode-acceptance-length: 2.9", "spec.acceptance"),
    ):
        with pytest.raises(ConfigError, match=rf"is not set in args: it comes from {owner}"):
            built(engine, f"roles: {{agg: {{args: {{{arg}}}}}}}\n")
    with pytest.raises(ConfigError, match="SGLANG_SIMULATE_ACC_LEN is not set by hand"):
        built("sglang", MTP3 + "env: {SGLANG_SIMULATE_ACC_LEN: '3.4'}\n", **AGENTIC)


def test_flags_that_an_image_has_beyond_its_table_are_declared() -> None:
    with pytest.raises(ConfigError, match="'brand-new' is not a flag of vllm") as error:
        built("vllm", "roles: {agg: {args: {brand-new: 1}}}\n")
    assert "flags: {NAME" in error.value.fix and "flags, " in error.value.allowed
    deployment = built("vllm", "flags: {brand-new: int}\nroles: {agg: {args: {brand-new: 1}}}\n")
    assert args_of(deployment)["brand-new"] == "1"
    with pytest.raises(ConfigError, match="'brand-new' can't be many"):
        built("vllm", "flags: {brand-new: int}\nroles: {agg: {args: {brand-new: many}}}\n")


def test_a_range_is_every_number_of_it_behind_one_flag() -> None:
    argv = built("sglang", "roles: {agg: {args: {cuda-graph-bs: '1..${conc}'}}}\n", image="x:v0.5.16").roles[0].argv
    at = argv.index("--cuda-graph-bs")
    assert argv[at : at + 5] == ("--cuda-graph-bs", "1", "2", "3", "4")
    with pytest.raises(ConfigError, match=r"case.yaml:4 roles.agg.args.cuda-graph-bs: '9..4' is no range"):
        built("sglang", "roles: {agg: {args: {cuda-graph-bs: '9..4'}}}\n", image="x:v0.5.16")


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("lmsysorg/sglang:v0.5.16-rocm720-mi35x", (0, 5, 16)),
        ("lmsysorg/sglang:v0.5.14-cu130@sha256:5027", (0, 5, 14)),
        ("vllm/vllm-openai:nightly-dev-arm64-cu13.0.1-426e59f", (13, 0, 1)),
        ("lmsysorg/sglang:nightly-dev-cu13-20260805-211ee642", None),
        ("localhost:5000/sglang:v0.5.16", (0, 5, 16)),
    ],
)
def test_the_release_in_an_images_tag(image: str, version: tuple[int, ...] | None) -> None:
    assert version_in(image) == version


def test_the_table_of_a_release_is_the_newest_that_is_not_newer() -> None:
    for image, version in (
        ("x:v0.5.8", "0.5.12"),
        ("x:v0.5.14", "0.5.12"),
        ("x:v0.5.18-rocm", "0.5.16"),
        ("x:latest", "0.5.23"),
    ):
        assert table("sglang", image).version == version


def test_every_engines_own_words_are_flags_that_it_knows() -> None:
    """What a renderer writes must be in the table of the release that it writes for."""
    for name in ("vllm", "sglang", "trtllm", "atom"):
        deployment = built(name, MTP3 + "context: 9000\ngraph_batch: 8\n", **AGENTIC)
        known = {flag.name for flag in ENGINES[name].flags(deployment.image)}
        assert set(args_of(deployment)) <= known, name


def test_a_table_refuses_a_value_of_the_wrong_kind() -> None:
    flags_of = ENGINES["sglang"].flags("x:v0.5.16")
    for name, value in (("max-running-requests", "many"), ("kv-cache-dtype", "fp3"), ("trust-remote-code", "1")):
        with pytest.raises(ConfigError):
            check_args((Arg(name, (value,), "r.yaml:1"),), flags_of, "sglang")
