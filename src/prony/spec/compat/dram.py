"""How much host memory an agentic row may use for KV offload."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from prony.base.errors import ConfigError
from prony.spec.runners import Hardware, Runners

_MAX_MIB = 2_861_022
_BYTES_PER_MIB = 2**20
_BYTES_PER_GB = 10**9


class DramBudget:
    """The budget rule over a runners file: a share of the node's memory in proportion to the devices in use."""

    def __init__(self, runners: Runners) -> None:
        self.known = {item.name: item.hardware for item in runners.labels if item.hardware}
        self.known |= {item.name: item.hardware for item in runners.without_nodes}

    def single(self, runner: str, search: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """Return GB for one node: its devices are tp * pp * pcp. Raises ConfigError when they exceed the node."""
        hardware = self._hardware(runner)
        devices = _devices(search)
        if devices > hardware.gpus_per_node:
            raise ConfigError(f"runner '{runner}': {devices} devices exceed the {hardware.gpus_per_node} of a node")
        return _gigabytes(hardware, devices, item)

    def multi(self, runner: str, prefill: Mapping[str, Any], item: Mapping[str, Any]) -> int:
        """Return GB per node of the prefill role. Raises ConfigError when replicas and nodes do not divide evenly."""
        hardware = self._hardware(runner)
        devices, there = _devices(prefill), hardware.gpus_per_node
        if devices > there:
            if devices % there:
                raise ConfigError(f"runner '{runner}': {devices} devices are no multiple of the {there} of a node")
            devices = there
        elif there % devices:
            raise ConfigError(f"runner '{runner}': {devices} devices do not divide the {there} of a node")
        return _gigabytes(hardware, devices, item)

    def _hardware(self, runner: str) -> Hardware:
        found = self.known.get(runner)
        if found is None:
            raise ConfigError(
                f"Runner '{runner}' requires 'available-cpu-dram-mib' in runner hardware metadata.",
                allowed=", ".join(sorted(self.known)),
                fix="add the label under 'hardware:' of the runners file",
            )
        return found


def _devices(spread: Mapping[str, Any]) -> int:
    return int(spread["tp"]) * int(spread.get("pp", 1)) * int(spread.get("pcp-size", 1))


def _gigabytes(hardware: Hardware, devices: int, item: Mapping[str, Any]) -> int:
    available = min(hardware.available_cpu_dram_mib, _MAX_MIB) * _BYTES_PER_MIB
    share = Decimal(str(item["dram-utilization"])) * devices / hardware.gpus_per_node
    return int(available * share / _BYTES_PER_GB)
