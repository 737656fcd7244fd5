"""Prefill and decode apart for real: two vLLM processes, KV handed over as files, our router before them."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np

from prony.measure.eventlog import Fault
from prony.measure.storage import read_log
from tests.e2e.conftest import Workbench
from tests.e2e.test_sweeps import results

BLOCK = 128
"""Tokens of a KV block of vLLM on CPUs: only whole blocks before the last prompt token are handed over."""


def test_decode_takes_the_kv_of_every_prompt_from_prefill(apart: Workbench) -> None:
    apart.edit("master.yaml", "conc-list: [1, 4]", "conc-list: [2]")
    done = apart.prony("run", "bench/master.yaml", patience_s=400)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = results(apart.out)
    (folder,) = apart.out.glob("jobs/*")
    requests = read_log(folder / "events.npz").requests
    assert (requests.fault == Fault.OK).all()
    assert (requests.output_counted == requests.output_planned).all()

    told = result.row.provenance
    assert told is not None and told.engine_facts is not None
    handed_over = (requests.input_counted - 2) // BLOCK * BLOCK
    assert told.engine_facts.external_hits == int(np.sum(handed_over)) > 0
    assert [(one.role, one.replicas) for one in told.commands] == [("prefill", 1), ("decode", 1), ("router", 1)]
    assert result.row.disagg and result.row.topology.label == "prefill TP1 + decode TP1"
    assert not (folder / "scratch/shared").exists()


def answer(url: str, prompt: list[int]) -> str:
    asked = {"model": "tiny-llama", "prompt": prompt, "max_tokens": 24, "temperature": 0, "ignore_eos": True}
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(asked).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(json.loads(response.read())["choices"][0]["text"])


def test_answers_are_those_of_one_server(apart: Workbench) -> None:
    """Wrong KV changes every answer of this model (0 of 12 stayed with zeroed files), rounding one in ten."""
    key = "tiny-llama-bf16-cpu-vllm-disagg"
    told = apart.prony("recipe", "explain", key, "--config", "bench/master.yaml", "--at", "conc=4", "--json")
    deployment, scratch = apart.path / "deployment.json", apart.path / "held"
    deployment.write_text(told.stdout)
    scratch.mkdir()
    argv = [sys.executable, str(Path(__file__).with_name("hold.py")), str(deployment), str(scratch)]
    with subprocess.Popen(argv, cwd=apart.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdin is not None and held.stdout is not None
        urls = dict(part.split("=", 1) for part in held.stdout.readline().split())
        prompts = [[10 + (seed * 7919 + at * at * 31) % 2000 for at in range(300 + 20 * seed)] for seed in range(8)]
        # A prefill worker is a whole server: asked first, it computes the whole answer itself.
        same = [answer(urls["prefill-0"], prompt) == answer(urls["router-0"], prompt) for prompt in prompts]
        held.stdin.close()
        assert held.wait(60) == 0
    assert sum(same) >= 5, same
