import functools
from pathlib import Path

import pytest

from prony.base.errors import PlanError
from prony.plan.planner import plan
from prony.recipe.deployment import Deployment, EnvVar, ModelRef, Role
from prony.recipe.resolve import resolve
from prony.spec.arrival import OpenLoop, Stage
from prony.spec.load import LoadRules
from prony.spec.loadfile import load_rules
from prony.spec.point import AgenticCoding, FixedSeqLen, Point, RolePool, Topology
from prony.spec.workload import MultiTurn
from tests.recipe.points import catalogue

TOPOLOGY = Topology(pools=(RolePool(role="agg"),))
RULES = LoadRules(requests="${max(8, 4 * conc)}", warmups="${conc}")


def point(concurrency: int = 1, **changes: object) -> Point:
    made = Point(
        config_key="key",
        image="image",
        model="model",
        model_prefix="model",
        precision="fp8",
        framework="sim",
        runner="cpu-local",
        topology=TOPOLOGY,
        workload=FixedSeqLen(isl=128, osl=32),
        concurrency=concurrency,
    )
    return made.model_copy(update=changes)


def deploy(point: Point) -> Deployment:
    return Deployment(
        engine="sim",
        image=point.image,
        model=ModelRef(id=point.model),
        served_model=point.model,
        topology=point.topology,
        roles=(Role(name="agg", argv=("server", point.framework)),),
    )


def test_points_that_share_a_server_become_one_launch_in_order() -> None:
    other = point(2, framework="other")
    launches = plan((point(1), other, point(4)), deploy, RULES, "master.yaml", "digest")
    assert [[job.point.concurrency for job in launch.jobs] for launch in launches] == [[1, 4], [2]]
    assert {job.launch_key for job in launches[0].jobs} == {launches[0].key}
    first = launches[0].jobs[0]
    assert (first.load.requests, first.load.warmups, first.config_file) == (8, 1, "master.yaml")
    assert launches[0].jobs[1].load.requests == 16


def test_prompts_differ_between_loads_and_repeats_but_not_between_deployments() -> None:
    rules = RULES.model_copy(update={"repeats": 2})
    points = (point(1), point(2), point(1, framework="other"), point(1, workload=FixedSeqLen(isl=64, osl=32)))
    jobs = [job for launch in plan(points, deploy, rules, "", "") for job in launch.jobs]
    seeds = {(job.point.concurrency, job.load.isl, job.repeat): set() for job in jobs}
    for job in jobs:
        seeds[job.point.concurrency, job.load.isl, job.repeat].add(job.load.seed)
    assert all(len(found) == 1 for found in seeds.values())
    assert len(set.union(*seeds.values())) == len(seeds) == 6


def test_another_seed_gives_other_prompts() -> None:
    (first,), (second,) = (plan((point(),), deploy, LoadRules(seed=seed), "", "") for seed in (0, 1))
    assert first.jobs[0].load.seed != second.jobs[0].load.seed


def test_equal_points_are_merged() -> None:
    (launch,) = plan((point(1), point(1)), deploy, RULES, "", "")
    assert len(launch.jobs) == 1


def test_different_points_of_the_same_work_are_refused_by_name() -> None:
    with pytest.raises(PlanError, match=r"'key conc=1' and 'key draft_model conc=1'.*differ only in spec_decoding"):
        plan((point(1), point(1, spec_decoding="draft_model")), deploy, RULES, "", "")


def test_load_that_cannot_be_run_names_the_load_file_the_point_and_the_rule() -> None:
    with pytest.raises(PlanError, match=r"^load.yaml requests: .*greater than 0.*key conc=1") as caught:
        plan((point(1),), deploy, LoadRules(requests="${conc - 1}"), "", "", load_file="load.yaml")
    assert "requests '${conc - 1}'" in caught.value.fix


def test_lengths_that_cannot_be_run_are_blamed_on_the_config_that_states_them() -> None:
    for isl in (0, 10**12):
        with pytest.raises(PlanError, match=r"^master.yaml key isl: ") as caught:
            plan((point(1, workload=FixedSeqLen.model_construct(isl=isl, osl=32)),), deploy, RULES, "master.yaml", "")
        assert "isl and osl 1 to 10,000,000" in caught.value.allowed


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"requests": "1000000000000"}, "load.yaml requests"),
        ({"warmups": "1000000000000"}, "load.yaml warmups"),
        ({"requests": "10000000"}, "load.yaml requests: 1,600,000,640 tokens"),
        ({"requests": "${1 // 0}"}, "load.yaml requests: .*division by zero"),
        ({"warmups": "-5"}, "load.yaml warmups"),
    ],
)
def test_loads_too_large_for_any_client_are_refused_before_a_server_starts(changes: dict[str, str], place: str) -> None:
    rules = LoadRules(**{"requests": "8", "warmups": "4", **changes})
    with pytest.raises(PlanError, match=f"^{place}") as caught:
        plan((point(1),), deploy, rules, "master.yaml", "", load_file="load.yaml")
    assert "1,000,000,000" in caught.value.allowed or "division" in caught.value.message


def test_concurrency_too_large_for_any_client_is_refused() -> None:
    with pytest.raises(PlanError, match=r"^master.yaml key concurrency"):
        plan((point(10**9),), deploy, LoadRules(requests="8", warmups="0"), "master.yaml", "")


def test_fault_in_an_expression_names_the_point() -> None:
    with pytest.raises(PlanError, match=r"'cnc' is not known here \(for key conc=1\)"):
        plan((point(1),), deploy, LoadRules(requests="${cnc}"), "", "")


def test_agentic_workload_is_refused_by_name() -> None:
    with pytest.raises(PlanError, match="no load can be made for a 'agentic-coding' workload"):
        plan((point(1, workload=AgenticCoding()),), deploy, RULES, "", "")


def test_secret_written_into_a_recipe_is_refused() -> None:
    def leaky(point: Point) -> Deployment:
        role = deploy(point).roles[0].model_copy(update={"env": (EnvVar(name="HF_TOKEN", value="hf_abc"),)})
        return deploy(point).model_copy(update={"roles": (role,)})

    with pytest.raises(PlanError, match="sets HF_TOKEN to a value") as caught:
        plan((point(1),), leaky, RULES, "", "")
    assert "hf_abc" not in str(caught.value)
    assert "{env:HF_TOKEN}" in caught.value.fix


def test_several_entry_replicas_without_a_router_are_refused() -> None:
    def wide(point: Point) -> Deployment:
        role = deploy(point).roles[0].model_copy(update={"replicas": 2})
        return deploy(point).model_copy(update={"roles": (role,)})

    with pytest.raises(PlanError, match="exactly one"):
        plan((point(1),), wide, RULES, "", "")


def test_a_workload_file_is_known_by_what_it_holds_not_by_where_it_lies(tmp_path: Path) -> None:
    def key(folder: str, line: str) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "log.jsonl").write_text(line)
        load = tmp_path / folder / "load.yaml"
        load.write_text("schema: 1\nworkload: {kind: request-log, file: log.jsonl}\n")
        (launch,) = plan((point(),), deploy, load_rules(load), "", "")
        return launch.jobs[0].key

    here = key("a", '{"prompt": "x"}\n')
    assert here == key("b", '{"prompt": "x"}\n') != key("b", '{"prompt": "y"}\n')


def test_arrival_workload_and_stream_of_the_load_file_reach_every_job() -> None:
    arrival = OpenLoop(stages=(Stage(rate=3),))
    rules = LoadRules(endpoint="chat", stream=False, arrival=arrival, workload=MultiTurn(turns=2))
    launches = plan((point(1), point(2)), deploy, rules, "", "")
    loads = [job.load for launch in launches for job in launch.jobs]
    assert [(load.arrival, load.workload, load.stream) for load in loads] == [(arrival, MultiTurn(turns=2), False)] * 2
    (plain,) = plan((point(1),), deploy, LoadRules(endpoint="chat"), "", "")
    assert plain.jobs[0].key != launches[0].jobs[0].key


def test_where_a_model_lies_is_not_part_of_the_work() -> None:
    here = deploy(point())
    there = here.model_copy(update={"model": here.model.model_copy(update={"location": "path:/elsewhere"})})
    other = here.model_copy(update={"model": here.model.model_copy(update={"revision": "other"})})
    assert here.key == there.key != other.key


def test_a_drafting_key_is_asked_through_the_chat_template() -> None:
    recipe = "schema: 1\nengine: vllm\nkeys: ['*']\nspec: {method: mtp, steps: 2}\n"
    drafting = point(4, framework="vllm", spec_decoding="mtp")
    deploy = functools.partial(resolve, catalogue(case=recipe))
    (launch,) = plan([drafting], deploy, LoadRules(), "m.yaml", "d")
    assert launch.jobs[0].load.endpoint == "chat"
    with pytest.raises(PlanError, match=r"load.yaml endpoint: key mtp conc=4 drafts, so its prompts must go through"):
        plan([drafting], deploy, LoadRules(endpoint="completions"), "m.yaml", "d", "load.yaml")
