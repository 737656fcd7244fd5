"""The real engine: tokens counted by the server equal those asked, cold and exact."""

import numpy as np

from prony.measure.eventlog import Fault, Kind
from tests.load.load import faults, load


def test_completions_are_token_exact_and_cold(llamacpp: str) -> None:
    plan = {"isl": 24, "osl": 6, "range_ratio": 0.5, "concurrency": 2, "requests": 4, "warmups": 2}
    log = load(llamacpp, "llamacpp", **plan)
    requests = log.requests
    assert faults(log) == [Fault.OK] * 4, log.messages
    assert requests.input_counted.tolist() == requests.input_planned.tolist()
    assert requests.output_counted.tolist() == requests.output_planned.tolist()
    assert requests.cached_counted.tolist() == [0] * 4
    assert log.client.prompt_lengths == "token-ids"


def test_chat_counts_its_template_and_its_role_chunk_is_no_token(llamacpp: str) -> None:
    log = load(llamacpp, "llamacpp", endpoint="chat", isl=48, osl=5, concurrency=1, requests=2)
    requests, events = log.requests, log.events
    assert faults(log) == [Fault.OK] * 2, log.messages
    assert requests.input_counted.tolist() == requests.input_planned.tolist() == [48, 48]
    assert requests.output_counted.tolist() == [5, 5]
    first = events.kind[events.request == 0]
    assert first[0] == Kind.ROLE and np.count_nonzero(first == Kind.CONTENT) >= 1
