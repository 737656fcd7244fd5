"""Is this load valid? Rules over an event log and its measurements; each gives findings in plain words.

`warn` leaves a result usable, `invalid` does not. Bounds that a busy small machine can break through no fault of the
server (lags, merged reads, achieved concurrency) are `warn`; together they mark the load as client-bound.
"""

from prony.base.finding import Finding
from prony.measure.eventlog import EventLog
from prony.measure.generation import Generation, generation
from prony.measure.measurement import Measurement
from prony.measure.rules.answers import ANSWER_RULES
from prony.measure.rules.case import Case, Rule
from prony.measure.rules.client import CLIENT_RULES, bound_by
from prony.measure.rules.client import client_bound as client_bound
from prony.measure.rules.flow import FLOW_RULES
from prony.measure.rules.machine import MACHINE_RULES
from prony.measure.steady import Steady, steady_state
from prony.spec.load import LoadPlan

RULES: tuple[Rule, ...] = (*ANSWER_RULES, *FLOW_RULES, *CLIENT_RULES, *MACHINE_RULES)


def judge(log: EventLog, load: LoadPlan, measurements: tuple[Measurement, ...]) -> tuple[Finding, ...]:
    """Return the verdicts about one load; none means that nothing is wrong with it."""
    made = generation(log)
    return judge_made(log, load, measurements, made, steady_state(log, made))


def judge_made(
    log: EventLog, load: LoadPlan, measurements: tuple[Measurement, ...], made: Generation, steady: Steady
) -> tuple[Finding, ...]:
    """Return the verdicts about one load, from what was found in its log."""
    values = {(found.metric, found.stat): found.value for found in measurements}
    case = Case(log=log, load=load, made=made, steady=steady, values=values)
    verdicts = tuple(finding for rule in RULES for finding in rule(case))
    return (*verdicts, *bound_by(verdicts))
