"""How much host memory KV offload may use: a share of the node's in proportion to the devices in use."""

from decimal import Decimal

from prony.base.errors import ConfigError
from prony.spec.runners import Hardware, Runners

_MAX_MIB = 2_861_022
_BYTES_PER_MIB = 2**20
_BYTES_PER_GB = 10**9


class DramBudget:
    """The budget rule over a runners file. `devices`: of one replica, tp * pp * pcp (DCP and EP add none)."""

    def __init__(self, runners: Runners) -> None:
        self.known = {item.name: item.hardware for item in runners.labels if item.hardware}
        self.known |= {item.name: item.hardware for item in runners.without_nodes}

    def single(self, runner: str, devices: int, utilization: float) -> int:
        """Return GB for one node. Raises ConfigError when the devices exceed the node."""
        hardware = self._hardware(runner)
        if devices > hardware.gpus_per_node:
            raise ConfigError(
                f"runner '{runner}': {devices} devices exceed the {hardware.gpus_per_node} of a node",
                fix="lower tp, pp or pcp-size",
            )
        return _gigabytes(hardware, devices, utilization)

    def multi(self, runner: str, devices: int, utilization: float) -> int:
        """Return GB per node of the prefill (or only) role. Raises ConfigError when replicas do not fill nodes evenly.

        A replica that is larger than a node takes whole nodes, a smaller one must divide its node.
        """
        hardware = self._hardware(runner)
        there = hardware.gpus_per_node
        if max(devices, there) % min(devices, there):
            relation = "are no multiple of" if devices > there else "do not divide"
            raise ConfigError(
                f"runner '{runner}': {devices} devices {relation} the {there} of a node",
                fix="choose tp * pp * pcp-size of the prefill workers so that nodes are filled evenly",
            )
        return _gigabytes(hardware, min(devices, there), utilization)

    def _hardware(self, runner: str) -> Hardware:
        found = self.known.get(runner)
        if found is None:
            raise ConfigError(
                f"the available-cpu-dram-mib of runner '{runner}' is not known",
                allowed=", ".join(sorted(self.known)),
                fix="add the label under 'hardware:' of the runners file",
            )
        return found


def _gigabytes(hardware: Hardware, devices: int, utilization: float) -> int:
    """Return whole GB, cut off. Decimal, so that 0.8 is 0.8: the binary fraction can fall short of a whole GB."""
    available = min(hardware.available_cpu_dram_mib, _MAX_MIB) * _BYTES_PER_MIB
    share = Decimal(str(utilization)) * devices / hardware.gpus_per_node
    return int(available * share / _BYTES_PER_GB)
