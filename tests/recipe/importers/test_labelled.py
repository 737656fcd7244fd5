"""A script that does not run what its key's labels say is told, and so is a command line that cannot be read."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from prony.base.errors import ConfigError
from prony.recipe.importers.commandline import begins, read_command
from prony.recipe.importers.launch import Import
from prony.recipe.importers.script import import_script
from prony.spec.point import AgenticCoding, Point, RolePool, Topology
from tests.conftest import optional_part
from tests.recipe.points import point

_OWN = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
_ALLOWED = not subprocess.run(
    ["unshare", *_OWN, "--mount", "--net", "--pid", "--fork", "true"], capture_output=True, check=False
).returncode
SGLANG = 'python3 -m sglang.launch_server --model-path "$MODEL" --tp "$TP"'
CHAIN = "--speculative-algorithm EAGLE --speculative-num-steps 3 --speculative-eagle-topk 1"
IMAGE = "x:v0.5.16"


def key(attention: bool = False, **changes: object) -> Point:
    pool = RolePool(role="agg", tp=8, ep=8 if attention else 1, dp_attention=attention)
    values = {"config_key": "key-a", "framework": "sglang", "image": IMAGE, "runner": "mi355x"}
    return point(**{**values, "topology": Topology(pools=(pool,)), **changes})


def imported(folder: Path, text: str, *points: Point) -> Import:
    optional_part(_ALLOWED, "namespaces (unshare)")
    (folder / "run.sh").write_text(text)
    return import_script(folder / "run.sh", points, 20.0, lambda _: None)


def told(found: Import) -> list[str]:
    return [fault.partition(": ")[2] for fault in found.faults]


def test_what_a_label_asks_for_and_the_script_forgets_is_told(tmp_path: Path) -> None:
    found = imported(tmp_path, f"{SGLANG}\n", key(attention=True))
    assert told(found) == [
        f"nothing was found, {flag} is given: the point's label asks for it"
        for flag in ("data-parallel-size 8", "expert-parallel-size 8", "enable-dp-attention")
    ]
    full = f'{SGLANG} --dp "$TP" --ep-size "$EP_SIZE" --enable-dp-attention\n'
    assert imported(tmp_path, full, key(attention=True)).faults == ()


def test_another_size_or_model_than_the_label_is_told(tmp_path: Path) -> None:
    found = imported(tmp_path, "sglang serve --model-path other/model --tp-size 4\n", key())
    assert told(found) == [
        "tp-size 4 was found, 8 is given",
        "it serves other/model, the point says org/model",
    ]
    for folder in ("$(hf download $MODEL)", "/models/${MODEL#*/}"):
        local = f'sglang serve --model-path "{folder}" --tp-size 8\n'
        assert imported(tmp_path, local, key(model="org/model")).faults == ()


def test_simulated_acceptance_is_compared_with_the_curve(tmp_path: Path) -> None:
    drafting = key(spec_decoding="mtp")
    assert imported(tmp_path, f"{SGLANG} {CHAIN}\n", drafting).faults == ()
    found = imported(tmp_path, f"SGLANG_SIMULATE_ACC_LEN=3.9 {SGLANG} {CHAIN}\n", drafting)
    assert told(found) == ["a simulated acceptance length of 3.9 was found, real acceptance is given"]
    model = {"model": "deepseek-ai/DeepSeek-V4-Pro", "framework": "vllm", "image": "x:latest"}
    agentic = key().model_copy(update={"spec_decoding": "mtp", "workload": AgenticCoding(), **model})
    config = '{"method":"mtp","num_speculative_tokens":2,"rejection_sample_method":"synthetic",'
    text = f"vllm serve $MODEL -tp $TP -sc '{config}\"synthetic_acceptance_length\":AL}}'\n"
    assert imported(tmp_path, text.replace("AL", "2.27"), agentic).faults == ()
    assert told(imported(tmp_path, text.replace("AL", "2.49"), agentic)) == [
        "a simulated acceptance length of 2.49 was found, a simulated acceptance length of 2.27 is given"
    ]


def test_tools_that_name_an_engine_start_none() -> None:
    for words in (
        "pip install vllm sglang",
        "python3 bench.py --backend vllm",
        "vllm bench serve --model m",
        "python3 -m sglang.bench_serving --backend sglang",
        "docker pull vllm/vllm",
        "vllm",
    ):
        assert begins(words.split(), "vllm") is None and begins(words.split(), "sglang") is None, words
    assert begins(["mpirun", "-n", "1", "trtllm-serve", "m", "--tp_size", "4"], "trtllm") == 4
    assert begins(["docker", "run", "-e", "A=1", "image", "/usr/bin/vllm", "serve", "m"], "vllm") == 7


def test_a_command_line_is_read_as_the_engine_reads_it() -> None:
    line = ["vllm", "serve", "m", "--max_num_seqs=8", "-tp", "4", "--max-num-seqs", "16", "--seed", "-1"]
    model, flags = read_command(line, "vllm", "x:latest")
    assert model == "m"
    assert flags == {"max-num-seqs": ("16",), "tensor-parallel-size": ("4",), "seed": ("-1",)}
    for wrong, words in (("-x is not a flag", "-x 3"), ("'n' stands where a flag should", "n")):
        with pytest.raises(ValueError, match=wrong):
            read_command(["vllm", "serve", "m", *words.split()], "vllm", "x:latest")


def test_a_server_in_a_container_has_the_environment_that_it_is_given(tmp_path: Path) -> None:
    text = (
        "export OUTSIDE=1 PASSED=2\ndocker run --rm -e PASSED -e GIVEN=3 --env=ALSO=4 image vllm serve $MODEL -tp $TP\n"
    )
    found = imported(tmp_path, text, key(framework="vllm", image="x:latest"))
    assert found.faults == ()
    assert yaml.safe_load(found.text)["env"] == {"PASSED": "2", "GIVEN": "3", "ALSO": "4"}


def test_a_client_that_comes_first_is_not_taken_for_the_server(tmp_path: Path) -> None:
    text = f"pip install sglang\npython3 warm.py --backend sglang\n{SGLANG} --page-size 64 --page-size 32\n"
    found = imported(tmp_path, text, key())
    assert found.faults == () and yaml.safe_load(found.text)["roles"]["agg"]["args"] == {"page-size": 32}


def test_a_command_that_cannot_be_read_is_told_with_its_point(tmp_path: Path) -> None:
    lame = f"[ $CONC = 4 ] && {SGLANG} -x 3 || {SGLANG}\n"
    points = [key(concurrency=conc) for conc in (4, 8)]
    found = imported(tmp_path, lame, *points)
    assert [fault for fault in told(found) if "cannot be read: -x is not a flag" in fault] == told(found)[:1]
    config = "vllm serve $MODEL -tp $TP -sc '{\"num_speculative_tokens\":2}'\n"
    with pytest.raises(ConfigError, match="'method' is missing"):
        imported(tmp_path, config, key(framework="vllm", image="x:latest", spec_decoding="mtp"))
