"""What a runner's nodes are, also where the label itself does not say it."""

from prony.base.errors import ConfigError
from prony.facts.skus import sku_of_runner
from prony.spec.runners import Runners


def node_sizes(runners: Runners) -> dict[str, int]:
    """Return the devices of every node that stands in a label with hardware facts."""
    return {
        node: label.hardware.gpus_per_node for label in runners.labels if label.hardware for node in label.nodes
    }  # fmt: skip


def gpus_per_node(runners: Runners, name: str) -> int | None:
    """Return the devices of a node of a label: as the label says, or the fewest of its nodes that others describe."""
    for label in runners.labels:
        if label.name == name:
            if label.hardware:
                return label.hardware.gpus_per_node
            sizes = node_sizes(runners)
            return min((sizes[node] for node in label.nodes if node in sizes), default=None)
    return next((item.hardware.gpus_per_node for item in runners.without_nodes if item.name == name), None)


def likely_gpus_per_node(runners: Runners, name: str) -> int | None:
    """Return the devices of a node, guessed from the largest node of the same SKU where nothing better is known."""
    known = gpus_per_node(runners, name)
    if known is not None:
        return known
    family = _sku(name)
    sizes = [label.hardware.gpus_per_node for label in runners.labels if label.hardware and _sku(label.name) == family]
    return max(sizes, default=None) if family else None


def _sku(name: str) -> str:
    try:
        return sku_of_runner(name)
    except ConfigError:
        return ""
