"""The three changes of examples/seeds resolve to what their authors describe, flag by flag."""

import json
from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.cli.main import main
from prony.recipe.catalogue import load_catalogue
from prony.recipe.deployment import Deployment, Role
from prony.recipe.resolve import resolve
from prony.recipe.when import Purpose
from prony.spec.master import load_master
from prony.spec.matrix import expand, select
from prony.spec.point import Point
from prony.spec.runners import load_runners
from tests.conftest import REPOSITORY
from tests.recipe.points import flags

SEEDS = REPOSITORY / "examples" / "seeds"
CATALOGUE = load_catalogue(())
DISAGG = "qwen3.5-fp8-mi355x-sglang-disagg"


def points(key: str, folder: Path = SEEDS) -> dict[int, Point]:
    matrix = expand(select(load_master([folder / "master.yaml"]), [key]), load_runners(SEEDS / "runners.yaml"))
    return {point.concurrency: point for point in matrix.points}


def served(key: str, conc: int, purpose: Purpose = "throughput") -> Deployment:
    return resolve(CATALOGUE, points(key)[conc], purpose)


def role(deployment: Deployment, name: str) -> Role:
    return next(one for one in deployment.roles if one.name == name)


def drafting(one: Role) -> dict[str, str | bool]:
    return {name: value for name, value in flags(one.argv).items() if name.startswith("speculative")}


def environment(one: Role) -> dict[str, str]:
    return {item.name: item.value for item in one.env}


EAGLE = {
    "speculative-algorithm": "EAGLE",
    "speculative-num-steps": "3",
    "speculative-num-draft-tokens": "4",
    "speculative-eagle-topk": "1",
}


@pytest.mark.parametrize(("conc", "gpus", "decode_tp"), [(8, 12, "8"), (64, 12, "8"), (128, 8, "4")])
def test_both_arms_draft_on_prefill_and_decode_and_the_last_decodes_on_four(
    conc: int, gpus: int, decode_tp: str
) -> None:
    deployment = served(f"{DISAGG}-mtp", conc)
    assert deployment.topology.gpus == gpus and deployment.chat_template
    prefill, decode = role(deployment, "prefill"), role(deployment, "decode")
    assert drafting(prefill) == drafting(decode) == EAGLE
    assert flags(prefill.argv)["tensor-parallel-size"] == "4"
    assert flags(decode.argv)["tensor-parallel-size"] == decode_tp
    assert (prefill.gpus, decode.gpus, role(deployment, "router").gpus) == (4, int(decode_tp), 0)
    assert deployment.entry_role == "router" and deployment.spec and deployment.spec.acceptance == "real"


def test_the_five_concurrencies_of_the_drafting_key_are_those_of_the_seed() -> None:
    assert sorted(points(f"{DISAGG}-mtp")) == [8, 16, 32, 64, 128]


def test_the_key_without_drafting_is_not_touched_by_the_one_with_it(tmp_path: Path) -> None:
    text = (SEEDS / "master.yaml").read_text()
    alone = text[: text.index(f"{DISAGG}-mtp:")]
    (tmp_path / "master.yaml").write_text(alone)
    before = resolve(CATALOGUE, points(DISAGG, tmp_path)[64])
    after = served(DISAGG, 64)
    assert before.model_dump_json() == after.model_dump_json() and before.key == after.key
    assert not drafting(role(after, "decode")) and after.spec is None and not after.chat_template


def test_a_setting_that_says_another_draft_length_is_refused() -> None:
    point = points(f"{DISAGG}-mtp")[64]
    prefill, decode = point.topology.pools
    lying = decode.model_copy(update={"settings": (decode.settings[0].model_copy(update={"value": "2"}),)})
    topology = point.topology.model_copy(update={"pools": (prefill, lying)})
    with pytest.raises(ConfigError, match=r"sets DECODE_MTP_SIZE=2, the recipe drafts 3 tokens"):
        resolve(CATALOGUE, point.model_copy(update={"topology": topology}))


def test_the_new_checkpoint_has_thirteen_points_on_two_devices() -> None:
    found = [point for key in ("", "-mtp") for point in points(f"qwen3.5-fp4-mi355x-sglang{key}").values()]
    assert len(found) == 13 and {point.topology.gpus for point in found} == {2}
    args = flags(served("qwen3.5-fp4-mi355x-sglang", 256).roles[0].argv)
    assert args["kv-cache-dtype"] == "fp8_e4m3" and args["disable-shared-experts-fusion"] is True
    assert args["max-running-requests"] == args["cuda-graph-max-bs"] == "256"


AGENTIC = "glm5.2-fp4-mi355x-sglang-agentic-mtp"
SIMULATED = {
    "SGLANG_SIMULATE_ACC_LEN": "2.99",
    "SGLANG_SIMULATE_ACC_METHOD": "match-expected",
    "SGLANG_SIMULATE_ACC_TOKEN_MODE": "real-draft-token",
}


def test_agentic_throughput_runs_at_the_committed_acceptance_length_and_evals_do_not() -> None:
    assert sorted(points(AGENTIC)) == [1, 4, 8, 12, 16]
    for conc in points(AGENTIC):
        throughput, evaluation = served(AGENTIC, conc), served(AGENTIC, conc, "eval")
        assert SIMULATED.items() <= environment(throughput.roles[0]).items()
        assert throughput.spec and throughput.spec.acceptance_length == 2.99 and throughput.spec.curve == "glm-5.2/mtp"
        assert not SIMULATED.keys() & environment(evaluation.roles[0]).keys()
        assert evaluation.spec and evaluation.spec.acceptance == "real"
        assert drafting(throughput.roles[0]) == drafting(evaluation.roles[0]) == EAGLE
        assert throughput.key != evaluation.key


def test_the_agentic_server_is_shaped_as_its_author_says() -> None:
    args = flags(served(AGENTIC, 16).roles[0].argv)
    asked = {
        "tensor-parallel-size": "8",
        "expert-parallel-size": "8",
        "kv-cache-dtype": "fp8_e4m3",
        "dsa-prefill-backend": "tilelang",
        "dsa-decode-backend": "tilelang",
        "tool-call-parser": "glm47",
        "reasoning-parser": "glm45",
        "chunked-prefill-size": "131072",
        "mem-fraction-static": "0.8",
        "hicache-ratio": "1.5",
        "hicache-write-policy": "write_through",
        "hicache-io-backend": "direct",
        "hicache-mem-layout": "page_first_direct",
        "enable-hierarchical-cache": True,
    }
    assert asked.items() <= args.items()
    assert not any(name.startswith("speculative-moe") for name in args)


def test_an_image_of_another_release_is_held_to_the_flags_of_that_release() -> None:
    old = points(AGENTIC)[16].model_copy(update={"image": "lmsysorg/sglang-rocm:v0.5.12-rocm720-mi35x"})
    with pytest.raises(ConfigError, match=r"'dsa-decode-backend' is not a flag of sglang \(did you mean 'nsa-decode-b"):
        resolve(CATALOGUE, old)


def test_the_agentic_jobs_are_named_as_the_reference_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--config-files", str(SEEDS / "master.yaml"), "--runner-config", str(SEEDS / "runners.yaml")]
    assert main(["matrix", "test-config", "--config-keys", AGENTIC, *files]) == 0
    names = [row["exp-name"] for row in json.loads(capsys.readouterr().out)]
    assert names == [f"glm5.2_tp8_conc{conc}_kvdram-hicache_spec-mtp" for conc in (1, 4, 8, 12, 16)]


def test_a_change_of_one_image_is_one_line_and_touches_exactly_its_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (SEEDS / "master.yaml").read_text()
    old = "&sglang-rocm-mi35x lmsysorg/sglang-rocm:v0.5.18-rocm720-mi35x-20260829"
    assert text.count("v0.5.18-rocm720-mi35x-20260829") == 1
    (tmp_path / "new.yaml").write_text(text.replace(old, old.replace("0829", "0901")))
    argv = ["matrix", "diff", "--runner-config", str(SEEDS / "runners.yaml"), "--json", str(SEEDS / "master.yaml")]
    assert main([*argv, str(tmp_path / "new.yaml")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert not told["added"] and not told["removed"]
    touched = [(pair["before"]["config_key"], pair["before"]["concurrency"]) for pair in told["altered"]]
    plain = [("qwen3.5-fp4-mi355x-sglang", conc) for conc in (4, 8, 16, 32, 64, 128, 256)]
    assert sorted(touched) == sorted(
        plain + [("qwen3.5-fp4-mi355x-sglang-mtp", conc) for conc in (4, 8, 16, 32, 64, 128)]
    )
