"""Prefill and decode apart for real: two vLLM processes, KV handed over as files, our router before them."""

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
