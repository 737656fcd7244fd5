import pytest

from prony.base.errors import ConfigError
from prony.sim.faults import Fault, Faults, read_fault


def test_faults_strike_every_nth_request_and_die_after_only_one() -> None:
    faults = Faults([read_fault("http-500=3"), read_fault("die-after=4"), read_fault("slow-first-token=2:1.5")])
    struck = [sorted(faults.next_request()) for _ in range(8)]
    slow = ["slow-first-token"]
    assert struck == [[], slow, ["http-500"], ["die-after", *slow], [], ["http-500", *slow], [], slow]


def test_faults_are_read_with_their_values() -> None:
    assert read_fault("ignore-term") == Fault("ignore-term")
    assert read_fault("slow-first-token=2:0.5") == Fault("slow-first-token", 2, 0.5)


@pytest.mark.parametrize(
    "text", ["http-500", "http-500=", "http-500=x", "http-500=0", "ignore-term=1", "slow-first-token=3", "http-500=2:1"]
)
def test_a_fault_of_the_wrong_form_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not of the form"):
        read_fault(text)


def test_an_unknown_fault_is_told_with_what_was_perhaps_meant() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'close-early'\?"):
        read_fault("close-erly=1")
