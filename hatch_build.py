"""Build hook: the wheel carries the browser libraries and the examples, which a checkout keeps elsewhere."""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageAndExamples(BuildHookInterface):  # type: ignore[type-arg]
    """Fetch the vendor files when missing, then put them and examples/ into the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fill build_data's force_include. Editable installs read the checkout and need nothing."""
        if version == "editable" or self.target_name != "wheel":
            return
        root = Path(self.root)
        vendor = _fetch_vendor(root)
        include = build_data["force_include"]
        for file in sorted(vendor.glob("d3*")):
            include[str(file)] = f"prony/web/static/vendor/{file.name}"
        for folder in ("examples", "recipes"):
            if (root / folder).is_dir():
                include[str(root / folder)] = f"prony/{folder}"


def _fetch_vendor(root: Path) -> Path:
    script = root / "tools" / "fetch_vendor.py"
    spec = importlib.util.spec_from_file_location("fetch_vendor", script)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{script}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.fetch(root)
    vendor: Path = root / module.VENDOR
    return vendor
