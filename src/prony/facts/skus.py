"""Accelerators that results may come from, and how a runner's label names one."""

import re
from typing import Literal

from prony.base.errors import ConfigError
from prony.base.model import Frozen

Vendor = Literal["NVIDIA", "AMD", "CPU"]


class Sku(Frozen):
    """One accelerator model: the key that rows carry, its vendor, name and kind, and where the name is from.

    memory_bytes: of one device, as much as its data sheet or its driver allows at most; None for a host, whose memory
    differs. memory_source: where that is from.
    """

    key: str
    vendor: Vendor
    label: str
    kind: Literal["gpu", "cpu"] = "gpu"
    source: str
    memory_bytes: int | None = None
    memory_source: str = ""


_GIB = 2**30
_NVIDIA = "https://www.nvidia.com/en-us/data-center"
_AMD = "https://www.amd.com/en/products/accelerators/instinct"

SKUS: tuple[Sku, ...] = (
    Sku(
        key="h100",
        vendor="NVIDIA",
        label="H100 SXM",
        source=f"{_NVIDIA}/h100/",
        memory_bytes=80 * _GIB,
        memory_source="H100 data sheet: 80 GB, which drivers count in GiB",
    ),
    Sku(
        key="h200",
        vendor="NVIDIA",
        label="H200 SXM",
        source=f"{_NVIDIA}/h200/",
        memory_bytes=141 * _GIB,
        memory_source="H200 data sheet: 141 GB, which drivers count in GiB",
    ),
    Sku(
        key="b200",
        vendor="NVIDIA",
        label="B200 SXM",
        source=f"{_NVIDIA}/hgx/",
        memory_bytes=180 * _GIB,
        memory_source="HGX B200: 1.4 TB for 8, 180 GiB each",
    ),
    Sku(
        key="b300",
        vendor="NVIDIA",
        label="B300 SXM",
        source=f"{_NVIDIA}/hgx/",
        memory_bytes=269 * _GIB,
        memory_source="HGX B300: 2.1 TB for 8; 288 GB are 269 GiB",
    ),
    Sku(
        key="gb200",
        vendor="NVIDIA",
        label="GB200 NVL72",
        source=f"{_NVIDIA}/gb200-nvl72/",
        memory_bytes=186 * _GIB,
        memory_source="GB200 NVL72: 13.4 TB for 72, 186 GiB each",
    ),
    Sku(
        key="gb300",
        vendor="NVIDIA",
        label="GB300 NVL72",
        source=f"{_NVIDIA}/gb300-nvl72/",
        memory_bytes=278 * _GIB,
        memory_source="GB300 NVL72: 20 TB for 72, 278 GiB each",
    ),
    Sku(
        key="rtx6000pro",
        vendor="NVIDIA",
        label="RTX PRO 6000 Blackwell",
        source=f"{_NVIDIA}/rtx-pro-6000-blackwell-server-edition/",
        memory_bytes=96 * _GIB,
        memory_source="data sheet: 96 GB, which drivers count in GiB",
    ),
    Sku(
        key="mi300x",
        vendor="AMD",
        label="Instinct MI300X",
        source=f"{_AMD}/mi300/mi300x.html",
        memory_bytes=192 * _GIB,
        memory_source="data sheet: 192 GB, which drivers count in GiB",
    ),
    Sku(
        key="mi325x",
        vendor="AMD",
        label="Instinct MI325X",
        source=f"{_AMD}/mi300/mi325x.html",
        memory_bytes=256 * _GIB,
        memory_source="data sheet: 256 GB, which drivers count in GiB",
    ),
    Sku(
        key="mi355x",
        vendor="AMD",
        label="Instinct MI355X",
        source=f"{_AMD}/mi350/mi355x.html",
        memory_bytes=288 * _GIB,
        memory_source="data sheet: 288 GB, which drivers count in GiB",
    ),
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
