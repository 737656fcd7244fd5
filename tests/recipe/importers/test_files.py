"""models.yaml and srt-slurm recipes: every one of the real files is verified, or it is told what is not the same."""

from pathlib import Path

import pytest
import yaml

from prony.base.errors import ConfigError
from prony.base.yamldoc import load_yaml, parse_yaml
from prony.recipe.importers.launch import Import
from prony.recipe.importers.modelsyaml import import_model, read_model_entry
from prony.recipe.importers.srtslurm import read_srt_slurm
from prony.recipe.importers.verify import imported

_DEFINES = {"MORI_MAX_DISPATCH_TOKENS_PREFILL": 12288, "MORI_MAX_DISPATCH_TOKENS_DECODE": 128}


def test_every_model_of_the_real_file_is_verified(shared: Path) -> None:
    document = load_yaml(shared / "data/inferencex/recipes/amd-models.yaml")
    assert len(document) == 12
    for name in document:
        found = import_model(read_model_entry(document, name, _DEFINES), "key-a", "lmsysorg/sglang:v0.5.16")
        assert found.faults == (), name
        assert yaml.safe_load(found.text)["engine"] == "sglang"


def test_arithmetic_needs_its_numbers(shared: Path) -> None:
    document = load_yaml(shared / "data/inferencex/recipes/amd-models.yaml")
    said = []
    for name in document:
        try:
            import_model(read_model_entry(document, name, {}), "key-a", "")
        except ConfigError as error:
            said.append(error.message)
    assert said and all("MORI_MAX_DISPATCH_TOKENS" in message for message in said)
    with pytest.raises(ConfigError, match="no model 'Nothing'"):
        read_model_entry(document, "Nothing", _DEFINES)


def srt_imports(shared: Path) -> dict[str, Import]:
    folder = shared / "data/inferencex/recipes/srt-slurm-recipes"
    found = {}
    for path in sorted(folder.rglob("*.yaml")):
        launch = read_srt_slurm(load_yaml(path))
        framework = {"dynamo-trtllm": "dynamo-trt", "trtllm": "trt"}.get(launch.engine, launch.engine)
        found[str(path.relative_to(folder))] = imported(launch, "key-a", framework)
    return found


def test_the_real_srt_slurm_recipes_are_verified_but_for_two_that_are_told(shared: Path) -> None:
    found = srt_imports(shared)
    assert len(found) == 38
    wrong = {name: one.faults for name, one in found.items() if one.faults}
    assert len(wrong) == 2
    for faults in wrong.values():  # prefill drafts one token there and decode three, under one label
        assert any('num_speculative_tokens":1' in fault and 'num_speculative_tokens":3' in fault for fault in faults)


def test_what_an_import_leaves_out_is_told(shared: Path) -> None:
    notes = [note for one in srt_imports(shared).values() for note in one.notes]
    assert notes and all(len(note) > 10 for note in notes)


_SRT = """
name: two
model: {path: org/model, container: vllm/vllm-openai:v0.27.1, precision: fp8}
resources: {gpu_type: b200, prefill_nodes: 1, decode_nodes: 1, prefill_workers: 1, decode_workers: 1, gpus_per_node: 8}
backend:
  type: vllm
  connector: null
  vllm_config:
    prefill: {tensor-parallel-size: 8, max-num-seqs: 16}
    decode: {tensor-parallel-size: 8, max-num-seqs: 256, %s}
"""


def test_a_flag_that_the_release_does_not_know_is_carried_over_and_declared() -> None:
    launch = read_srt_slurm(parse_yaml(_SRT % "brand-new-flag: 7", "two.yaml"))
    found = imported(launch, "key-a", launch.engine)
    assert found.faults == ()
    recipe = yaml.safe_load(found.text)
    assert recipe["flags"] == {"brand-new-flag": "int"}
    assert recipe["roles"]["decode"]["args"]["brand-new-flag"] == 7
    assert recipe["roles"]["prefill"]["args"] == {"max-num-seqs": 16}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base: {}\noverride_a: {}\n", "several launches"),
        ("name: x\n", "backend"),
        ("name: x\nbackend: 3\nresources: {}\n", "backend"),
        ("name: x\nbackend: {type: nobody}\nresources: {}\nmodel: {path: a, container: b}\n", "nobody"),
    ],
)
def test_what_is_no_recipe_is_told(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_srt_slurm(parse_yaml(text, "bad.yaml"))
