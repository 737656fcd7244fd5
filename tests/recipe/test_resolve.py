"""Layers, rules and expressions give one literal deployment, whose labels equal what runs."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.base.errors import ConfigError
from prony.recipe.deployment import Deployment, EnvVar
from prony.recipe.resolve import resolve
from prony.spec.point import AgenticCoding, FixedSeqLen, RolePool, Topology
from tests.recipe.points import SIM_PARENT, catalogue, flags, point

LLAMA = """schema: 1
engine: llamacpp
keys: ["*"]
model: {id: org/model, location: "path:/models", files: [{name: m.gguf}]}
"""


def args_of(deployment: Deployment) -> dict[str, str | bool]:
    return flags(deployment.roles[0].argv)


def sim_case(text: str, **changes: Any) -> Deployment:
    return resolve(
        catalogue(parent=SIM_PARENT, case="schema: 1\nextends: parent\nkeys: ['*']\n" + text), point(**changes)
    )


def test_a_child_lies_over_its_parent_flag_by_flag() -> None:
    args = args_of(sim_case("roles: {agg: {args: {itl-ms: 5, slots: 8}}}\n"))
    assert (args["ttft-ms"], args["itl-ms"], args["slots"]) == ("20", "5", "8")


def test_null_deletes_what_the_parent_set() -> None:
    assert "itl-ms" not in args_of(sim_case("roles: {agg: {args: {itl-ms: null}}}\n"))


def test_null_in_a_role_hides_what_all_roles_have() -> None:
    args = args_of(sim_case("roles: {all: {args: {slots: 3, seed: 1}}, agg: {args: {slots: null}}}\n"))
    assert "slots" not in args
    assert args["seed"] == "1"


def test_null_in_a_role_hides_a_variable_of_the_top() -> None:
    assert sim_case("env: {A: b, C: d}\nroles: {agg: {env: {A: null}}}\n").roles[0].env == (
        EnvVar(name="C", value="d"),
    )


def test_a_roles_own_value_wins_over_that_of_all() -> None:
    assert args_of(sim_case("roles: {agg: {args: {slots: 1}}, all: {args: {slots: 2}}}\n"))["slots"] == "1"


def test_lists_repeat_a_flag_and_replace_the_parents_list() -> None:
    argv = sim_case("roles: {agg: {args: {fault: [http-500=3, ignore-term]}}}\n").roles[0].argv
    at = argv.index("--fault")
    assert argv[at : at + 4] == ("--fault", "http-500=3", "--fault", "ignore-term")


def test_expressions_are_computed_over_the_point() -> None:
    args = args_of(
        sim_case("roles: {agg: {args: {max-model-len: '${isl + osl + 256}', slots: '${max(8, 4 * conc)}'}}}\n")
    )
    assert (args["max-model-len"], args["slots"]) == ("416", "16")


def test_an_expression_that_fails_at_this_point_names_its_line() -> None:
    with pytest.raises(ConfigError, match=r"case.yaml:4 roles.agg.args.slots: .*division by zero"):
        sim_case("roles: {agg: {args: {slots: '${8 // (conc - 4)}'}}}\n")
    with pytest.raises(ConfigError, match="'isl' is not known here"):
        sim_case("roles: {agg: {args: {slots: '${isl}'}}}\n", workload=AgenticCoding())


def test_environment_comes_from_the_top_then_all_then_the_role() -> None:
    text = "env: {A: top, B: top, C: 1}\nroles: {all: {env: {B: all}}, agg: {env: {C: '${conc}'}}}\n"
    assert sim_case(text).roles[0].env == (
        EnvVar(name="A", value="top"),
        EnvVar(name="B", value="all"),
        EnvVar(name="C", value="4"),
    )


RULES = """rules:
  - {when: {conc: ">=2"}, roles: {agg: {args: {slots: 2}}}}
  - {when: {conc: [4, 8], precision: fp8}, roles: {agg: {args: {slots: 48}}}}
  - {when: {conc: 16, disagg: false}, roles: {agg: {args: {slots: 16}}}}
"""


@pytest.mark.parametrize(("conc", "slots"), [(1, None), (2, "2"), (4, "48"), (8, "48"), (16, "16"), (32, "2")])
def test_rules_hold_by_value_list_and_comparison_and_the_last_wins(conc: int, slots: str | None) -> None:
    assert args_of(sim_case(RULES, concurrency=conc)).get("slots") == slots


def test_all_conditions_of_a_rule_must_hold() -> None:
    assert args_of(sim_case(RULES, precision="fp4"))["slots"] == "2"


def test_bases_come_before_rules_and_the_parents_rules_before_the_childs() -> None:
    parent = SIM_PARENT + "rules: [{when: {conc: 4}, roles: {agg: {args: {itl-ms: 7, ttft-ms: 7}}}}]\n"
    child = "schema: 1\nextends: parent\nkeys: ['*']\nroles: {agg: {args: {itl-ms: 1, ttft-ms: 1}}}\n"
    child += "rules: [{when: {conc: 4}, roles: {agg: {args: {ttft-ms: 9}}}}]\n"
    args = args_of(resolve(catalogue(parent=parent, child=child), point()))
    assert (args["itl-ms"], args["ttft-ms"]) == ("7", "9")


def test_a_field_that_the_point_lacks_fulfils_no_rule() -> None:
    text = "rules: [{when: {isl: '<=1000'}, roles: {agg: {args: {slots: 1}}}}]\n"
    assert args_of(sim_case(text))["slots"] == "1"
    assert "slots" not in args_of(sim_case(text, workload=AgenticCoding()))


def test_readiness_is_read_in_seconds() -> None:
    assert sim_case("ready: {path: /v1/models, timeout: 1.5m}\n").roles[0].ready.timeout_s == 90
    assert sim_case("").roles[0].ready.path == "/health"


def test_an_unknown_flag_is_told_with_its_line_and_what_was_perhaps_meant() -> None:
    with pytest.raises(ConfigError, match=r"case.yaml:4: 'itl_ms' is not a flag of sim \(did you mean 'itl-ms'\?\)"):
        sim_case("roles: {agg: {args: {itl_ms: 3}}}\n")


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ("{port: 80}", "comes from prony itself"),
        ("{model: x}", "comes from served_model"),
        ("{slots: many}", "can't be many"),
        ("{itl-ms: -2}", "can't be -2"),
        ("{itl-ms: .nan}", "can't be nan"),
        ("{slots: 1.5}", "can't be 1.5"),
        ("{slots: 99999999999}", "can't be 99999999999"),
        ("{slots: true}", "needs a value"),
        ("{slots: [1, 2]}", "once only"),
    ],
)
def test_a_flag_with_a_value_it_cannot_have_is_refused(args: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"case.yaml:4: .*{reason}"):
        sim_case(f"roles: {{agg: {{args: {args}}}}}\n")


def test_a_switch_takes_no_value_and_a_choice_only_what_there_is() -> None:
    for args, reason in (("{no-warmup: 1}", "takes no value"), ("{cache-type-k: q9}", "can't be q9")):
        recipes = catalogue(a=LLAMA + f"roles: {{agg: {{args: {args}}}}}\n")
        with pytest.raises(ConfigError, match=reason):
            resolve(recipes, point(framework="llamacpp"))


def test_labels_must_equal_what_runs() -> None:
    for change, reason in (
        ({"framework": "vllm"}, "engine is 'sim', but sim-a asks for 'vllm'"),
        ({"topology": Topology(pools=(RolePool(role="prefill"), RolePool(role="decode")))}, "can't serve the roles"),
    ):
        with pytest.raises(ConfigError, match=reason):
            sim_case("", **change)
    with pytest.raises(ConfigError, match=r"case.yaml:4: model.id is 'org/other'"):
        sim_case("model: {id: org/other}\n")
    with pytest.raises(ConfigError, match=r"case.yaml:4: 2 replicas of agg, but the point has 1"):
        sim_case("roles: {agg: {replicas: 2}}\n")


def test_an_image_that_drifted_from_the_master_config_is_refused() -> None:
    digest = "sha256:" + "a" * 64
    with pytest.raises(ConfigError, match=r"case.yaml:4: image.ref is 'img:0', but sim-a asks for 'img:1'"):
        sim_case("image: {ref: 'img:0'}\n")
    with pytest.raises(ConfigError, match=r"image.digest without image.ref"):
        sim_case(f"image: {{digest: '{digest}'}}\n")
    deployment = sim_case(f"image: {{ref: 'img:1', digest: '{digest}'}}\n")
    assert (deployment.image, deployment.image_digest) == ("img:1", digest)


def test_an_unknown_engine_is_told_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"a.yaml:2: 'lamacpp' is not an engine \(did you mean 'llamacpp'\?\)"):
        resolve(catalogue(a="schema: 1\nengine: lamacpp\nkeys: ['*']\n"), point())
    with pytest.raises(ConfigError, match=r"'engine' is missing"):
        resolve(catalogue(a="schema: 1\nkeys: ['*']\n"), point())


SELF_DRAFT = (
    LLAMA + "rules: [{when: {spec_decoding: draft_model}, spec: {method: draft_model, steps: 3, draft_model: self}}]\n"
)


def test_speculation_runs_exactly_where_the_label_says_so() -> None:
    recipes = catalogue(a=SELF_DRAFT)
    plain = args_of(resolve(recipes, point(framework="llamacpp")))
    draft = args_of(resolve(recipes, point(framework="llamacpp", spec_decoding="draft_model")))
    assert "spec-type" not in plain
    assert (draft["spec-type"], draft["draft-max"], draft["model-draft"]) == ("draft-simple", "3", "{model_dir}/m.gguf")


@pytest.mark.parametrize(
    ("spec", "label", "reason"),
    [
        ("", "draft_model", "nothing here speculates"),
        ("spec: {method: draft_model, steps: 3, draft_model: self}\n", "none", "labelled spec-decoding: none"),
        ("spec: {method: draft_model, steps: 3, draft_model: self}\n", "mtp", "labelled spec-decoding: mtp"),
        ("spec: {method: eagle, steps: 3}\n", "mtp", "spec.method is 'eagle'"),
        ("spec: {method: draft_model, steps: 3}\n", "draft_model", "can't draft with 'None'"),
        ("spec: {method: draft_model, draft_model: self}\n", "draft_model", "steps must be 1 or more"),
        ("spec: {steps: 3}\n", "none", "spec.steps without spec.method"),
    ],
)
def test_speculation_that_differs_from_the_label_is_refused(spec: str, label: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        resolve(catalogue(a=LLAMA + spec), point(framework="llamacpp", spec_decoding=label))


def test_llamacpp_refuses_parallelism_that_it_would_not_run() -> None:
    with pytest.raises(ConfigError, match="the point asks for 8"):
        resolve(catalogue(a=LLAMA), point(framework="llamacpp", topology=Topology(pools=(RolePool(role="agg", tp=8),))))
    with pytest.raises(ConfigError, match="needs a file to serve"):
        resolve(catalogue(a="schema: 1\nengine: llamacpp\nkeys: ['*']\n"), point(framework="llamacpp"))


def test_every_argument_and_variable_has_a_place_where_it_was_written() -> None:
    deployment = sim_case("env:\n  A: b\nroles: {agg: {args: {itl-ms: 5}}}\n")
    places = {origin.leaf: (origin.file, origin.line) for origin in deployment.origins}
    assert places["roles.agg.args.itl-ms"] == ("case.yaml", 6)
    assert places["roles.agg.args.ttft-ms"] == ("parent.yaml", 3)
    assert places["roles.agg.env.A"] == ("case.yaml", 5)
    assert places["roles.agg.args.port"] == ("prony", 0)
    assert places["image"] == ("point", 0)
    for name in args_of(deployment):
        assert f"roles.agg.args.{name}" in places


def test_where_a_value_stands_is_no_part_of_the_deployments_identity() -> None:
    assert sim_case("").key == sim_case("# a comment\n\n").key
    assert sim_case("").key != sim_case("roles: {agg: {args: {itl-ms: 3}}}\n").key


NAMES = ("ttft-ms", "itl-ms", "slots", "seed", "max-model-len", "tokens-per-event")
VALUES = st.one_of(st.integers(2, 99), st.sampled_from(["${conc}", "${isl + osl}", "7"]))
ARGS = st.dictionaries(st.sampled_from(NAMES), VALUES)
ENV = st.dictionaries(st.sampled_from(["A", "B", "C"]), st.text("xyz", min_size=1, max_size=3))
LAYERS = st.fixed_dictionaries(
    {
        "env": ENV,
        "roles": st.fixed_dictionaries(
            {
                "all": st.fixed_dictionaries({"args": ARGS, "env": ENV}),
                "agg": st.fixed_dictionaries({"args": ARGS, "env": ENV}),
            }
        ),
    }
)
WHENS = st.sampled_from([{"conc": 4}, {"conc": ">4"}, {"precision": ["fp8", "fp4"]}, {"tp": 1, "osl": "<99"}])
RULE_LISTS = st.lists(
    st.tuples(WHENS, LAYERS.filter(lambda layer: bool(layer["env"]))).map(lambda rule: {"when": rule[0], **rule[1]}),
    max_size=3,
)


def shuffled(value: Any, draw: Any) -> Any:
    """Return the same mapping with its keys in another order, at every depth; lists keep theirs."""
    if isinstance(value, dict):
        return {key: shuffled(value[key], draw) for key in draw(st.permutations(list(value)))}
    return [shuffled(item, draw) for item in value] if isinstance(value, list) else value


def built(parent: dict[str, Any], child: dict[str, Any]) -> Deployment:
    texts = {
        "parent": yaml.safe_dump({"schema": 1, "engine": "sim", **parent}, sort_keys=False),
        "child": yaml.safe_dump({"schema": 1, "extends": "parent", "keys": ["*"], **child}, sort_keys=False),
    }
    return resolve(catalogue(**texts), point())


@settings(max_examples=60, deadline=None)
@given(LAYERS, LAYERS, RULE_LISTS, st.data())
def test_the_order_of_keys_in_a_map_never_matters(parent: Any, child: Any, rules: Any, data: st.DataObject) -> None:
    case = {**child, "rules": rules}
    first = built(parent, case)
    again = built(shuffled(parent, data.draw), shuffled(case, data.draw))
    assert first.key == again.key
    assert first.model_dump(exclude={"origins"}) == again.model_dump(exclude={"origins"})


@settings(max_examples=30, deadline=None)
@given(LAYERS, LAYERS, RULE_LISTS)
def test_resolving_twice_gives_the_same_with_the_same_origins(parent: Any, child: Any, rules: Any) -> None:
    assert built(parent, {**child, "rules": rules}) == built(parent, {**child, "rules": rules})


@settings(max_examples=60, deadline=None)
@given(LAYERS, LAYERS)
def test_a_child_changes_no_leaf_that_it_does_not_name(parent: Any, child: Any) -> None:
    before, after = built(parent, {}), built(parent, child)
    named_args = {name for role in child["roles"].values() for name in role["args"]}
    named_env = set(child["env"]) | {name for role in child["roles"].values() for name in role["env"]}
    old, new = args_of(before), args_of(after)
    assert {k: v for k, v in old.items() if k not in named_args} == {
        k: v for k, v in new.items() if k not in named_args
    }
    old_env = {item.name: item.value for item in before.roles[0].env if item.name not in named_env}
    assert old_env == {item.name: item.value for item in after.roles[0].env if item.name not in named_env}


@given(st.integers(1, 10_000), st.integers(1, 10_000), st.integers(1, 512))
@settings(max_examples=20, deadline=None)
def test_expressions_follow_the_point(isl: int, osl: int, conc: int) -> None:
    text = "roles: {agg: {args: {max-model-len: '${isl + osl}', slots: '${conc}'}}}\n"
    args = args_of(sim_case(text, workload=FixedSeqLen(isl=isl, osl=osl), concurrency=conc))
    assert (args["max-model-len"], args["slots"]) == (str(isl + osl), str(conc))
