"""Launch scripts are traced where they can do no harm, and become recipes that give what they start."""

import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from prony.base.errors import ConfigError
from prony.recipe.importers.launch import Import
from prony.recipe.importers.script import environment, import_script
from prony.recipe.importers.trace import trace
from prony.spec.point import AgenticCoding, FixedSeqLen, KvOffload, Point, RolePool, Topology
from tests.conftest import REPOSITORY, optional_part
from tests.recipe.points import point

SCRIPTS = REPOSITORY / "tests" / "recipe" / "importers" / "scripts"
_OWN = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_ALLOWED = not subprocess.run(
    ["unshare", *_OWN, "--mount", "--net", "--pid", "--fork", "true"], capture_output=True, check=False
).returncode


@pytest.fixture(autouse=True)
def namespaces() -> None:
    optional_part(_ALLOWED, "namespaces (unshare)")


def points(framework: str, **changes: object) -> list[Point]:
    """Two spreads, with and without DP attention, at four concurrencies and two lengths."""
    found = []
    for tp, attention in ((8, False), (8, True), (4, False)):
        for conc in (4, 16, 64, 128):
            for isl in (1024, 8192):
                pool = RolePool(role="agg", tp=tp, ep=tp if attention else 1, dp_attention=attention)
                values = {
                    "config_key": "key-a",
                    "framework": framework,
                    "runner": "mi355x",
                    "concurrency": conc,
                    "topology": Topology(pools=(pool,)),
                    "workload": FixedSeqLen(isl=isl, osl=1024),
                    "image": "x:v0.5.16" if framework == "sglang" else "x:latest",
                    **changes,
                }
                found.append(point(**values))
    return found


def imported(name: str, asked: list[Point]) -> Import:
    return import_script(SCRIPTS / name, asked, 20.0, lambda _: None)


def test_an_sglang_script_becomes_constants_expressions_and_rules() -> None:
    asked = points("sglang")
    asked += [one.model_copy(update={"spec_decoding": "mtp"}) for one in asked[:6]]
    found = imported("sglang.sh", asked)
    assert found.faults == () and found.notes == ()
    recipe = yaml.safe_load(found.text)
    args = recipe["roles"]["agg"]["args"]
    assert args["max-running-requests"] == "${conc}" and args["cuda-graph-max-bs"] == "${2 * conc}"
    assert args["context-length"] == "${isl + osl + 256}" and args["trust-remote-code"] is True
    assert recipe["env"] == {"SGLANG_USE_AITER": "1"}
    told = {repr(rule["when"]): rule for rule in recipe["rules"]}
    assert told["{'dp_attention': True}"]["env"] == {"GPU_MAX_HW_QUEUES": "5"}
    assert told["{'dp_attention': True}"]["roles"]["agg"]["args"] == {"chunked-prefill-size": 65536}
    assert told["{'conc': '>=64'}"]["roles"]["agg"]["args"] == {"mem-fraction-static": 0.85}
    assert told["{'spec_decoding': 'mtp'}"]["spec"] == {"method": "eagle", "steps": 3}
    assert "client" not in found.text and "hf" not in recipe


def test_a_vllm_script_with_offload_and_a_busy_wait_is_followed() -> None:
    drafting = {"spec_decoding": "mtp", "workload": AgenticCoding(), "model": "deepseek-ai/DeepSeek-V4-Pro"}
    asked = points("vllm", **drafting)[:16]
    offload = {"kv_offload": KvOffload(mode="dram", backend="native"), "cpu_dram_gb": 800}
    asked = list(dict.fromkeys(asked)) + [one.model_copy(update=offload) for one in dict.fromkeys(asked[:8])]
    found = imported("vllm.sh", asked)
    assert found.faults == ()
    recipe = yaml.safe_load(found.text)
    assert recipe["roles"]["agg"]["args"]["max-num-seqs"] == "${2 * conc}"
    assert recipe["spec"] == {"method": "mtp", "steps": 2} or recipe["rules"][0]["spec"]["steps"] == 2


def test_a_trtllm_script_that_writes_its_options_is_read_with_them() -> None:
    found = imported("trtllm.sh", points("trt"))
    assert found.faults == ()
    recipe = yaml.safe_load(found.text)
    args = recipe["roles"]["agg"]["args"]
    assert args["config.kv_cache_config.dtype"] == "fp8"
    assert args["max_batch_size"] == args["config.cuda_graph_config.max_batch_size"] == "${conc}"
    (rule,) = recipe["rules"]
    assert rule["when"] == {"dp_attention": True}
    assert set(rule["roles"]["agg"]["args"]) == {"max_batch_size", "config.cuda_graph_config.max_batch_size"}


def test_drafting_that_an_options_file_says_becomes_spec() -> None:
    found = imported("trtllm.sh", [one.model_copy(update={"spec_decoding": "mtp"}) for one in points("trt")[:3]])
    assert found.faults == ()
    assert yaml.safe_load(found.text)["spec"] == {"method": "mtp", "steps": 3}


def test_a_script_of_a_stranger_does_no_harm(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    script = folder / "hostile.sh"
    script.write_text((SCRIPTS / "hostile.sh").read_text())
    (folder / "precious").write_text("keep")
    before = time.monotonic()
    traced = trace(script, folder, environment(points("sglang")[0]), 30.0)
    assert time.monotonic() - before < 30
    (call,) = [call for call in traced.calls if "sglang.launch_server" in call.argv]
    assert not call.env.keys() & {"STOLEN", "PLANTED", "ONLINE"}
    assert script.exists() and (folder / "precious").read_text() == "keep"
    assert not Path("/usr/planted").exists() and Path("/usr/bin/env").exists()


def test_a_script_that_never_ends_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "endless.sh"
    script.write_text("while true; do :; done\n")
    traced = trace(script, tmp_path, {}, 1.0)
    assert traced.code is None and traced.calls == ()
    with pytest.raises(ConfigError, match=r"no point starts a server: .*did not end within its time limit"):
        import_script(script, points("sglang")[:1], 1.0, lambda _: None)


def test_a_fork_bomb_is_bounded_and_ended(tmp_path: Path) -> None:
    script = tmp_path / "bomb.sh"
    script.write_text("bomb() { bomb | bomb & }; bomb; while true; do /usr/bin/sleep 1; done\n")
    before = time.monotonic()
    traced = trace(script, tmp_path, {}, 2.0)
    assert traced.code is None and time.monotonic() - before < 30


def test_what_no_field_tells_is_literal_and_reported(tmp_path: Path) -> None:
    script = tmp_path / "odd.sh"
    script.write_text(
        'case "$TP-$CONC-$ISL" in 8-4-1024|4-16-8192|8-128-8192) X=7;; *) X=9;; esac\n'
        'python3 -m sglang.launch_server --model-path "$MODEL" --tp "$TP" --page-size $X &\n'
    )
    asked = [one for one in points("sglang") if not one.topology.pools[0].dp_attention]
    found = import_script(script, asked, 20.0, lambda _: None)
    assert found.faults == ()
    assert found.notes == ("roles.agg.args.page-size varies in a way that no field tells; it has a rule per point",)


def test_keys_that_are_not_traced_are_told() -> None:
    apart = Topology(pools=(RolePool(role="prefill"), RolePool(role="decode")))
    with pytest.raises(ConfigError, match="scripts of sglang are not traced here"):
        imported("sglang.sh", [points("sglang")[0].model_copy(update={"topology": apart})])
    with pytest.raises(ConfigError, match="no such file"):
        imported("nowhere.sh", points("sglang")[:1])
