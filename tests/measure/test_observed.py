import dataclasses
import json

import pytest

from prony.base.finding import Finding
from prony.measure.definitions import measure
from prony.measure.eventlog import EventLog
from prony.measure.observed import Disturbance, EngineFacts
from prony.measure.result import Measurement, Provenance
from prony.measure.verdicts import judge
from prony.spec.load import LoadPlan
from tests.measure.logs import closed_loop
from tests.view.rows import locals_with_repeats


def verdicts(log: EventLog) -> dict[str, Finding]:
    load = LoadPlan(isl=100, osl=11, concurrency=log.concurrency, requests=len(log.requests))
    found = judge(log, load, measure(log, 1))
    return {one.rule.removeprefix("verdict/"): one for one in found if one.rule != "verdict/steady-state"}


def observed(log: EventLog, **engine: object) -> EventLog:
    return dataclasses.replace(log, engine=EngineFacts.model_validate(engine))


def acceptance(**engine: object) -> Measurement | None:
    found = measure(observed(closed_loop(8, 2), **engine), 1)
    return next((one for one in found if one.metric == "acceptance_length"), None)


def disturbed(foreign: float, steal: float = 0.0) -> EventLog:
    seen = Disturbance(foreign_cpu_share=foreign, steal_share=steal, load1=1.5, cores=2)
    return dataclasses.replace(closed_loop(8, 2), disturbance=seen)


def test_other_programs_on_the_machine_are_told_in_cores() -> None:
    found = verdicts(disturbed(0.47))["machine-busy"]
    assert found.severity == "warn"
    assert "other programs used 47% of this machine's CPU while measuring (0.94" in found.message
    assert "run again" in found.fix


def test_a_hypervisor_that_takes_time_is_told_apart_from_other_programs() -> None:
    assert "other virtual machines took 20%" in verdicts(disturbed(0.0, 0.2))["machine-busy"].message


def test_a_quiet_machine_and_one_that_tells_nothing_have_no_verdict() -> None:
    assert verdicts(disturbed(0.03)) == {}
    assert verdicts(closed_loop(8, 2)) == {}


def test_fewer_slots_than_requests_in_flight_warn_that_ttft_includes_queueing() -> None:
    found = verdicts(observed(closed_loop(32, 16), slots=1))["slots"]
    assert "the server serves 1 request at a time, 16 were asked: TTFT includes queueing" in found.message


@pytest.mark.parametrize("slots", [16, 64, None])
def test_slots_that_suffice_or_are_not_told_have_no_verdict(slots: int | None) -> None:
    assert verdicts(observed(closed_loop(32, 16), slots=slots)) == {}


def test_tokens_of_somebody_else_on_the_server_are_noticed() -> None:
    log = closed_loop(8, 2)
    made = int(log.requests.output_counted.sum())
    assert verdicts(observed(log, output_tokens=made)) == {}
    assert (
        f"counted {made + 50} generated tokens"
        in verdicts(observed(log, output_tokens=made + 50))["engine-tokens"].message
    )


def test_acceptance_length_is_one_more_than_the_mean_with_an_interval_from_the_positions() -> None:
    # 100 drafts: 40 of none, 30 of one, 20 of two, 10 of three accepted tokens; mean 1, variance 1 * 100 / 99
    found = acceptance(drafts=100, accepted=100, accepted_at=(60, 30, 10))
    assert found is not None and found.ci95 is not None
    assert (found.value, found.n) == (2.0, 100)
    half = 1.96 * (1 / 99) ** 0.5
    assert found.ci95 == pytest.approx((2 - half, 2 + half))


def test_acceptance_length_without_positions_has_no_interval_and_without_drafts_is_absent() -> None:
    found = acceptance(drafts=100, accepted=250)
    assert found is not None
    assert (found.value, found.ci95) == (3.5, None)
    assert acceptance(drafts=0, accepted=0) is None
    assert acceptance(output_tokens=88) is None


def test_provenance_of_an_older_version_still_reads() -> None:
    row = locals_with_repeats()[0]
    assert row.provenance is not None
    old = row.provenance.model_dump(exclude={"commands", "model", "client", "disturbance", "engine_facts"})
    read = Provenance.model_validate_json(json.dumps(old))
    assert (read.commands, read.client, read.disturbance) == ((), None, None)
