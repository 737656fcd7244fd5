"""What cannot run, or not as asked, is said before it is queued: with the rule, its evidence, and what to do."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.base.yamldoc import parse_yaml
from prony.facts.feasibility import read_rules, shipped_rules
from prony.plan.feasibility import check_point, status
from prony.plan.judged import Judged, gathered, judge
from prony.plan.served import Served, serve
from prony.recipe.catalogue import Catalogue, load_catalogue, make_catalogue
from prony.recipe.model import read_recipe
from prony.spec.master import load_master
from prony.spec.matrix import expand, select
from prony.spec.point import FixedSeqLen, Point, RolePool, Topology
from prony.spec.runners import load_runners

NEW, OLD = "amd/Qwen3.5-397B-A17B-MXFP4-AttnFP8-V2", "amd/Qwen3.5-397B-A17B-MXFP4"
SGLANG, ATOM = "lmsysorg/sglang-rocm:v0.5.18-rocm720-mi35x-20260829", "rocm/atom:rocm7.2.2_atom0.1.2"
RUNNERS = "labels:\n  mi355x: [mi355x-one_0]\n"
KEY = """{key}:
  image: {image}
  model: {model}
  model-prefix: qwen3.5
  runner: mi355x
  precision: fp4
  framework: {framework}
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 8192
      osl: 1024
      search-space:
"""
NO_RECIPE = make_catalogue(())


def written(*entries: str, key: str = "qwen3.5-fp4-mi355x-sglang", model: str = NEW, framework: str = "sglang") -> str:
    image = SGLANG if framework == "sglang" else ATOM
    head = KEY.format(key=key, image=image, model=model, framework=framework)
    return head + "".join(f"      - {{ {entry} }}\n" for entry in entries)


def judged(tmp_path: Path, *keys: str, catalogue: Catalogue | None = None) -> tuple[Judged, ...]:
    """Judge keys as a user's master config has them, by default with the shipped recipes."""
    master, runners = tmp_path / "master.yaml", tmp_path / "runners.yaml"
    master.write_text("\n".join(keys))
    runners.write_text(RUNNERS)
    points = expand(select(load_master((master,)), None), load_runners(runners)).points
    return judge(points, load_catalogue(()) if catalogue is None else catalogue, {})


def statuses(found: Sequence[Judged]) -> Counter[str]:
    return Counter(one.status for one in found)


def point(model: str, sku: str, tp: int, **fields: object) -> Point:
    pool = RolePool(role="agg", tp=tp, **{name: fields.pop(name) for name in ("ep", "dp_attention") if name in fields})  # type: ignore[arg-type]
    plain: dict[str, object] = {
        "config_key": "k", "image": "x/y:v9.9.9", "model": model, "model_prefix": "m", "precision": "fp8",
        "framework": "sglang", "runner": sku, "topology": Topology(pools=(pool,)),
        "workload": FixedSeqLen(isl=8192, osl=1024), "concurrency": 4, **fields,
    }  # fmt: skip
    return Point.model_validate(plain)


def rules_of(found: Sequence[object]) -> set[str]:
    return {getattr(finding, "rule", "") for finding in found}


OLD_SPACE = (
    written("tp: 2, conc-start: 4, conc-end: 256", "tp: 4, conc-start: 4, conc-end: 16"),
    written(
        "tp: 2, conc-start: 4, conc-end: 128, spec-decoding: mtp",
        "tp: 4, conc-start: 4, conc-end: 16, spec-decoding: mtp",
        key="qwen3.5-fp4-mi355x-sglang-mtp",
    ),
)


@pytest.mark.parametrize("catalogue", [None, NO_RECIPE], ids=["with recipes", "without"])
def test_the_new_checkpoint_in_the_old_search_space_has_six_tp4_points_refused(
    tmp_path: Path, catalogue: Catalogue | None
) -> None:
    found = judged(tmp_path, *OLD_SPACE, catalogue=catalogue)
    refused = [one for one in found if one.status == "IMPOSSIBLE"]
    assert statuses(found) == {"OK": 13, "IMPOSSIBLE": 6}
    assert {one.point.topology.label for one in refused} == {"TP4"}
    for one in refused:
        (finding,) = [finding for finding in one.findings if finding.severity == "error"]
        assert finding.rule == "aiter-bpreshuffle-n64"
        assert "32 on each of 4 devices" in finding.message
        assert "33484262630" in finding.evidence and "N=32, K=4096" in finding.evidence
        assert "lower TP to 2" in finding.fix


def test_without_the_band_all_thirteen_points_are_ok(tmp_path: Path) -> None:
    found = judged(
        tmp_path,
        written("tp: 2, conc-start: 4, conc-end: 256"),
        written("tp: 2, conc-start: 4, conc-end: 128, spec-decoding: mtp", key="qwen3.5-fp4-mi355x-sglang-mtp"),
    )
    assert statuses(found) == {"OK": 13}
    assert all(not one.findings for one in found)


def test_the_old_checkpoint_at_tp4_and_the_atom_arm_stay_ok(tmp_path: Path) -> None:
    bands = ("tp: 2, conc-start: 4, conc-end: 256", "tp: 4, conc-start: 4, conc-end: 16")
    old = judged(tmp_path, written(*bands, model=OLD))
    atom = judged(tmp_path, written(*bands, key="qwen3.5-fp4-mi355x-atom", framework="atom"))
    assert statuses(old) == statuses(atom) == {"OK": 10}


def test_one_message_tells_all_points_of_a_key_and_spread(tmp_path: Path) -> None:
    findings = gathered(judged(tmp_path, *OLD_SPACE))
    assert [finding.rule for finding in findings] == ["aiter-bpreshuffle-n64"] * 2
    assert "(3 points, conc 4 8 16)" in findings[0].message


def test_a_recipe_that_turns_aiter_off_lifts_the_rule(tmp_path: Path) -> None:
    text = """schema: 1
engine: sglang
python: python3
keys: [qwen3.5-fp4-mi355x-sglang]
env: { SGLANG_USE_AITER: "0" }
"""
    own = make_catalogue((read_recipe(parse_yaml(text, "own.yaml"), "own"),))
    assert statuses(judged(tmp_path, OLD_SPACE[0], catalogue=own)) == {"OK": 10}


def test_a_variable_that_nothing_reads_is_told_with_its_place(tmp_path: Path) -> None:
    text = """schema: 1
engine: sglang
python: python3
keys: [qwen3.5-fp4-mi355x-sglang]
env: { SGLANG_USE_AITER: "1", SGLANG_USE_AITER_FP8_PER_TOKEN: "1" }
"""
    own = make_catalogue((read_recipe(parse_yaml(text, "own.yaml"), "own"),))
    key = written("tp: 2, conc-start: 4, conc-end: 4")
    (quark,) = judged(tmp_path, key, catalogue=own)
    (finding,) = [finding for finding in quark.findings if finding.rule == "aiter-fp8-per-token-not-read"]
    assert quark.status == "OK" and finding.severity == "info"
    assert "quark" in finding.message and "own.yaml:5" in finding.fix
    fp8 = judged(tmp_path, key.replace(NEW, "Qwen/Qwen3.5-397B-A17B-FP8"), catalogue=own)
    assert "aiter-fp8-per-token-not-read" not in rules_of(fp8[0].findings)


def test_weights_that_no_device_holds_are_impossible_and_those_that_fit_are_not() -> None:
    r1 = "deepseek-ai/DeepSeek-R1-0528"
    (finding,) = check_point(point(r1, "h200", 4))
    assert (finding.rule, finding.severity) == ("weights-fit", "error")
    assert status(check_point(point(r1, "h200", 8))) == "OK"
    assert status(check_point(point(r1, "cpu", 1))) == "OK"  # how much memory a host has is not known


def test_a_model_that_nobody_knows_is_not_judged_by_its_size() -> None:
    assert check_point(point("nobody/unknown-9000b", "h100", 1)) == ()


def test_kv_that_does_not_hold_the_concurrency_is_tight() -> None:
    llama = "meta-llama/Llama-3.3-70B-Instruct"
    calm, crowded = point(llama, "h200", 2, concurrency=8), point(llama, "h200", 2, concurrency=2048)
    assert status(check_point(calm)) == "OK"
    (finding,) = check_point(crowded)
    assert (finding.rule, status((finding,))) == ("concurrency-kv-pool", "TIGHT")


def test_a_request_that_never_fits_is_impossible() -> None:
    long = point("meta-llama/Llama-3.3-70B-Instruct", "h200", 1, workload=FixedSeqLen(isl=1_000_000, osl=1024))
    assert "request-fits" in rules_of(check_point(long))


def test_the_draft_layer_counts_against_the_same_budget() -> None:
    """Find the concurrency that fits without drafting and no more with it, and see it told there alone."""
    model = OLD
    found = {
        conc: check_point(point(model, "mi355x", 2, concurrency=conc, spec_decoding="mtp"))
        for conc in range(500, 2000, 10)
    }
    drafted = [conc for conc, findings in found.items() if "draft-in-static-budget" in rules_of(findings)]
    crowded = [conc for conc, findings in found.items() if "concurrency-kv-pool" in rules_of(findings)]
    assert drafted and crowded and max(drafted) < min(crowded)
    assert status(found[drafted[0]]) == "TIGHT"
    assert check_point(point(model, "mi355x", 2, concurrency=drafted[0])) == ()


@pytest.mark.parametrize(
    ("model", "fields", "rule"),
    [
        ("Qwen/Qwen3.5-397B-A17B-FP8", {"tp": 3}, "heads-divide"),
        ("MiniMaxAI/MiniMax-M3-MXFP8", {"tp": 6}, "kv-heads-divide"),
        ("MiniMaxAI/MiniMax-M2.5", {"tp": 8}, "expert-width-blocks"),
        ("deepseek-ai/DeepSeek-R1-0528", {"tp": 24, "ep": 24, "dp_attention": True}, "experts-need-redundancy"),
    ],
)
def test_what_does_not_divide_among_devices_is_told(model: str, fields: dict[str, int], rule: str) -> None:
    tp = fields.pop("tp")
    assert rule in rules_of(check_point(point(model, "mi355x", tp, **fields)))


def test_kv_heads_fewer_than_devices_are_copied() -> None:
    assert "kv-heads-divide" not in rules_of(check_point(point("Qwen/Qwen3.5-397B-A17B-FP8", "mi355x", 8)))


def test_dp_attention_with_mori_is_tight_where_the_launch_is_not_known() -> None:
    pools = (RolePool(role="prefill", tp=4), RolePool(role="decode", tp=8, ep=8, dp_attention=True))
    apart = point(
        "Qwen/Qwen3.5-397B-A17B-FP8", "mi355x", 8, kv_transfer="mori", framework="sglang-disagg",
        topology=Topology(pools=pools), disagg=True, multinode=True,
    )  # fmt: skip
    (finding,) = check_point(apart)
    assert finding.rule == "dp-attention-mori-unknown" and "EP8" in finding.message
    assert finding.message.startswith("decode: ")


@pytest.mark.parametrize(("fusion", "expected"), [("", "IMPOSSIBLE"), (", disable-shared-experts-fusion: true", "OK")])
def test_dp_attention_with_mori_fails_unless_the_shared_expert_is_apart(
    tmp_path: Path, fusion: str, expected: str
) -> None:
    text = f"""schema: 1
engine: sglang
python: python3
keys: [qwen3.5-fp4-mi355x-sglang]
roles: {{ agg: {{ args: {{ moe-a2a-backend: mori{fusion} }} }} }}
"""
    own = make_catalogue((read_recipe(parse_yaml(text, "own.yaml"), "own"),))
    key = written("tp: 8, ep: 8, dp-attn: true, conc-list: [64]", model=OLD)
    (one,) = judged(tmp_path, key, catalogue=own)
    assert one.status == expected


def test_an_image_of_another_vendor_is_impossible() -> None:
    wrong = point("openai/gpt-oss-120b", "mi355x", 1, image="lmsysorg/sglang:v0.5.16-cu130")
    assert rules_of(check_point(wrong)) == {"image-container"}
    assert check_point(wrong.model_copy(update={"runner": "b200"})) == ()


def test_an_own_recipe_that_refuses_a_point_makes_it_impossible_and_a_missing_one_is_a_note(tmp_path: Path) -> None:
    text = "schema: 1\nengine: vllm\npython: python3\nkeys: [qwen3.5-fp4-mi355x-sglang]\n"
    own = make_catalogue((read_recipe(parse_yaml(text, "own.yaml"), "own"),))
    key = written("tp: 2, conc-list: [4]")
    (refused,) = judged(tmp_path, key, catalogue=own)
    (missing,) = judged(tmp_path, key, catalogue=NO_RECIPE)
    assert (refused.status, rules_of(refused.findings)) == ("IMPOSSIBLE", {"recipe-refuses"})
    assert (missing.status, rules_of(missing.findings)) == ("OK", {"missing-recipe"})


def test_a_limit_below_the_concurrency_is_tight(tmp_path: Path) -> None:
    text = """schema: 1
engine: sglang
python: python3
keys: [qwen3.5-fp4-mi355x-sglang]
roles: { agg: { args: { max-running-requests: 32 } } }
"""
    own = make_catalogue((read_recipe(parse_yaml(text, "own.yaml"), "own"),))
    below, above = judged(tmp_path, written("tp: 2, conc-list: [32, 64]"), catalogue=own)
    assert below.status == "OK"
    assert (above.status, rules_of(above.findings)) == ("TIGHT", {"concurrency-limit"})


def test_a_rule_holds_for_the_releases_that_have_it() -> None:
    text = """schema: feasibility/1
rules:
- id: gone
  severity: impossible
  since: "0.5.16"
  until: "0.6.0"
  check: { kind: divisible, what: heads }
  message: "{size} over {shards}"
  fix: none
  evidence: a test
"""
    rules = read_rules(parse_yaml(text, "rules.yaml"))
    model = "Qwen/Qwen3.5-397B-A17B-FP8"
    images = {"i:v0.5.15": 0, "i:v0.5.16": 1, "i:v0.5.99": 1, "i:v0.6.0": 0, "i:nightly": 1}
    found = {image: len(check_point(point(model, "mi355x", 3, image=image), Served(), rules)) for image in images}
    assert found == images


def test_a_kind_that_is_none_is_told_with_its_line() -> None:
    text = """schema: feasibility/1
rules:
- id: odd
  severity: impossible
  check: { kind: divisibel, what: heads }
  message: m
  fix: f
  evidence: e
"""
    with pytest.raises(ConfigError, match=r"rules.yaml:5.*did you mean 'divisible'"):
        read_rules(parse_yaml(text, "rules.yaml"))


def test_every_shipped_rule_has_evidence_and_says_what_to_do() -> None:
    assert len(shipped_rules()) >= 15
    assert all(rule.evidence and rule.fix and rule.message for rule in shipped_rules())


def test_nothing_that_runs_at_the_reference_is_called_impossible(shared: Path) -> None:
    folder = shared / "data/inferencex/configs"
    master = load_master((folder / "nvidia-master.yaml", folder / "amd-master.yaml"))
    points = expand(select(master, None), load_runners(folder / "runners.yaml"), unlisted="note").points
    catalogue = load_catalogue(())
    found = [check_point(one, serve(catalogue, one)) for one in points]
    assert len(points) > 1800
    impossible = [one.label for one, findings in zip(points, found, strict=True) if status(findings) == "IMPOSSIBLE"]
    assert impossible == []
    # Eight points are tight, each for a reason: FP8 R1 on four B200 leaves 5 GiB, and so on.
    assert sum(status(findings) == "TIGHT" for findings in found) < 20
