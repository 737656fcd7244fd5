"""Accelerators that results may come from, and how a runner's label names one."""

import re
from typing import Literal

from prony.base.errors import ConfigError
from prony.base.model import Frozen

Vendor = Literal["NVIDIA", "AMD", "CPU"]


class Sku(Frozen):
    """One accelerator model: the key that rows carry, its vendor, name and kind, and where the name is from."""

    key: str
    vendor: Vendor
    label: str
    kind: Literal["gpu", "cpu"] = "gpu"
    source: str


_NVIDIA = "https://www.nvidia.com/en-us/data-center"
_AMD = "https://www.amd.com/en/products/accelerators/instinct"

SKUS: tuple[Sku, ...] = (
    Sku(key="h100", vendor="NVIDIA", label="H100 SXM", source=f"{_NVIDIA}/h100/"),
    Sku(key="h200", vendor="NVIDIA", label="H200 SXM", source=f"{_NVIDIA}/h200/"),
    Sku(key="b200", vendor="NVIDIA", label="B200 SXM", source=f"{_NVIDIA}/hgx/"),
    Sku(key="b300", vendor="NVIDIA", label="B300 SXM", source=f"{_NVIDIA}/hgx/"),
    Sku(key="gb200", vendor="NVIDIA", label="GB200 NVL72", source=f"{_NVIDIA}/gb200-nvl72/"),
    Sku(key="gb300", vendor="NVIDIA", label="GB300 NVL72", source=f"{_NVIDIA}/gb300-nvl72/"),
    Sku(
        key="rtx6000pro",
        vendor="NVIDIA",
        label="RTX PRO 6000 Blackwell",
        source=f"{_NVIDIA}/rtx-pro-6000-blackwell-server-edition/",
    ),
    Sku(key="mi300x", vendor="AMD", label="Instinct MI300X", source=f"{_AMD}/mi300/mi300x.html"),
    Sku(key="mi325x", vendor="AMD", label="Instinct MI325X", source=f"{_AMD}/mi300/mi325x.html"),
    Sku(key="mi355x", vendor="AMD", label="Instinct MI355X", source=f"{_AMD}/mi350/mi355x.html"),
    Sku(
        key="cpu",
        vendor="CPU",
        label="CPU host",
        kind="cpu",
        source="the machine itself; one host counts as one device",
    ),
)

_BY_KEY = {sku.key: sku for sku in SKUS}


def sku(key: str) -> Sku | None:
    """Return an accelerator by key, or None when it is not known."""
    return _BY_KEY.get(key)


def sku_of_runner(label: str) -> str:
    """Return the SKU key in a runner's label or name: `cluster:b200-dgxc` and `b200-dgxc_03` are `b200`.

    Raises ConfigError that lists the known SKUs.
    """
    name = re.split(r"[-_]", label.lower().removeprefix("cluster:"), maxsplit=1)[0]
    if name not in _BY_KEY:
        raise ConfigError(
            f"runner '{label}': '{name}' is not a known SKU",
            allowed=", ".join(_BY_KEY),
            fix="begin the label with the SKU, as in h200-lab_0",
        )
    return name
