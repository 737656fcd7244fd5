"""AMD's models.yaml: flags of a model per role and way of spreading, as SGLang's disaggregated launches read them."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from prony.base.errors import ConfigError, PronyError
from prony.base.yamldoc import YamlMap, parse_yaml
from prony.recipe.catalogue import make_catalogue
from prony.recipe.importers.launch import Import, Values
from prony.recipe.importers.verify import words_by_flag
from prony.recipe.importers.write import beyond_table, plain_value
from prony.recipe.model import read_recipe
from prony.recipe.resolve import resolve
from prony.spec.point import FixedSeqLen, Point, RoleName, RolePool, Setting, Topology

_FIELDS = {"PREFILL_TP_SIZE": "prefill_tp", "DECODE_TP_SIZE": "decode_tp"}
_SWITCHES = ("disable_radix_cache", "disable_cuda_graph", "prefill_round_robin_balance")
_BLOCKS = ("dp", "ep_only", "no_dp")
_TYPED = (
    *("disaggregation-transfer-backend", "enable-dp-attention"),
    *("speculative-algorithm", "speculative-eagle-topk", "speculative-draft-model-path"),
)
_ROLES: tuple[RoleName, ...] = ("prefill", "decode")
Plain = dict[str, Any]


@dataclass(frozen=True)
class ModelEntry:
    """One model of the file, and the numbers that its arithmetic may name beside the point's fields."""

    name: str
    entry: YamlMap
    defines: Mapping[str, int]

    @property
    def place(self) -> str:
        return f"{self.entry.file}:{self.entry.line} {self.name}"


def read_model_entry(document: YamlMap, name: str, defines: Mapping[str, int]) -> ModelEntry:
    """Return a model of the file. Raises ConfigError that lists those that are there."""
    if not isinstance(document.get(name), YamlMap):
        raise ConfigError(f"{document.file}: no model '{name}'", allowed=", ".join(document))
    return ModelEntry(name, document[name], defines)


def import_model(model: ModelEntry, key: str, image: str) -> Import:
    """Return a recipe for a model's disaggregated keys, verified with and without DP, EP and drafting.

    Raises ConfigError for arithmetic that names what nobody defines, and for drafting without an algorithm.
    """
    text = _text(model, key, image)
    recipe = read_recipe(parse_yaml(text, f"{key}.yaml"), key)
    faults = []
    for point in _points(model, key, image):
        try:
            found = resolve(make_catalogue([recipe]), point, "eval")
        except PronyError as error:
            faults.append(f"{model.place}: {error.message}")
            continue
        for role in found.roles[:2]:
            pool = next(pool for pool in point.topology.pools if pool.role == role.name)
            faults += _compared(model, pool, point, words_by_flag(role.argv))
    notes = (
        ()
        if _mtp(model)
        else ("drafting: mtp_flags is empty, so the steps flags would have no algorithm (mended by adding one there)",)
    )
    return Import(key, text, None, notes, tuple(dict.fromkeys(faults)))


def _text(model: ModelEntry, key: str, image: str) -> str:
    plain: Plain = {"schema": 1, "engine": "sglang", "keys": [key, f"{key}-mtp"], "python": "python3"}
    plain["topology"] = {"router": {"kind": "sglang-router"}}
    plain["roles"] = {"all": {"args": _plain(_flags(model, "base_flags"))}}
    rules: list[Plain] = []
    for role in _ROLES:
        block = model.entry.get(role) or {}
        plain["roles"][role] = {"args": _plain(_role_flags(model, role))}
        plain["roles"][role]["args"] |= _plain(_block_flags(model, role, "no_dp"))
        if role == "decode" and "ep_only" in block:
            rules.append(_rule({"decode_ep": ">1"}, role, _block_flags(model, role, "ep_only")))
        rules.append(_rule({f"{role}_ep": ">1"}, role, _flags(model, "ep_flags")))
        dp = {**_flags(model, "dp_flags"), **_block_flags(model, role, "dp")}
        rules.append(_rule({f"{role}_dp_attention": True}, role, dp))
    spec = _mtp(model)
    if spec:
        more = _plain(_flags(model, "mtp_flags"))
        rule: Plain = {"when": {"spec_decoding": "mtp"}, "spec": spec}
        rules.append(rule | ({"roles": {"all": {"args": more}}} if more else {}))
    plain["rules"] = [rule for rule in rules if rule.get("spec") or any(rule["roles"].values())]
    if beyond := beyond_table("sglang", image, _all_flags(model)):
        plain["flags"] = beyond
    return f"# Imported from {model.place}.\n" + yaml.safe_dump(plain, sort_keys=False, width=110)


def _all_flags(model: ModelEntry) -> list[Mapping[str, Values]]:
    blocks = [_block_flags(model, role, name) for role in _ROLES for name in _BLOCKS]
    texts = [_flags(model, name) for name in ("base_flags", "ep_flags", "dp_flags")]
    return [*texts, *(_role_flags(model, role) for role in _ROLES), *blocks]


def _rule(when: Plain, role: str, flags: Mapping[str, Values]) -> Plain:
    args = _plain(flags)
    return {"when": when, "roles": {role: {"args": args}} if args else {}}


def _mtp(model: ModelEntry) -> Plain | None:
    flags = _flags(model, "mtp_flags")
    algorithm = flags.get("speculative-algorithm")
    if algorithm is None:
        return None
    spec: Plain = {"method": algorithm[0].lower(), "steps": "${mtp_size}"}
    topk = flags.get("speculative-eagle-topk", ("1",))[0]
    spec |= {"topk": int(topk)} if topk != "1" else {}
    drafter = flags.get("speculative-draft-model-path")
    return spec | ({"draft_model": drafter[0]} if drafter else {})


def _flags(model: ModelEntry, name: str) -> dict[str, Values]:
    """Return the flags of a text as a command line has them."""
    text = str(model.entry.get(name) or "").replace('\\"', '"')
    return words_by_flag(tuple(shlex.split(text)))


def _role_flags(model: ModelEntry, role: str) -> dict[str, Values]:
    block = model.entry.get(role) or {}
    found: dict[str, Values] = {}
    for name, value in block.items():
        if name in _BLOCKS:
            continue
        flag = name.replace("_", "-")
        if name in _SWITCHES:
            found |= {flag: ()} if value else {}
        else:
            found[flag] = (str(value),)
    return found


def _block_flags(model: ModelEntry, role: str, name: str) -> dict[str, Values]:
    """Return the flags of one way of spreading: sizes, arithmetic, graph batches as a list or a range."""
    block = (model.entry.get(role) or {}).get(name)
    found: dict[str, Values] = {}
    if not isinstance(block, YamlMap):
        return found
    for key, value in block.items():
        if isinstance(value, bool):
            found |= {key.replace("_", "-"): ()} if value else {}
        elif key == "cuda_graph_bs_range":
            first, _, last = str(value).partition("-")
            found["cuda-graph-bs"] = (f"{first}..{last}",)
        elif key == "cuda_graph_bs":
            found["cuda-graph-bs"] = tuple(str(value).split())
        else:
            found[key.replace("_", "-")] = (_size(model, str(value), f"{block.file}:{block.lines[key]}"),)
    return found


def _size(model: ModelEntry, text: str, place: str) -> str:
    """Return a number, or arithmetic over names as an expression over the point's fields."""
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    names = sorted({node.id for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)})
    missing = [name for name in names if name not in _FIELDS and name not in model.defines]
    if missing:
        raise ConfigError(
            f"{place}: nobody says what {' and '.join(missing)} is", fix=f"say it: --define {missing[0]}=12288"
        )
    for name in names:
        text = re.sub(rf"\b{name}\b", _FIELDS.get(name) or str(model.defines[name]), text)
    return f"${{{text}}}"


def _plain(flags: Mapping[str, Values]) -> Plain:
    plain: Plain = {}
    for name, values in sorted(flags.items()):
        if name not in _TYPED:
            plain[name] = plain_value(values)
    return plain


def _points(model: ModelEntry, key: str, image: str) -> Iterator[Point]:
    """Yield points with every combination of DP attention, expert parallelism and drafting on both roles."""
    backend = _flags(model, "base_flags").get("disaggregation-transfer-backend", ("mori",))[0]
    for number in range(8 if _mtp(model) else 4):
        attention, expert, drafting = bool(number & 1), bool(number & 2), bool(number & 4)
        settings = (Setting(name="DECODE_MTP_SIZE", value="3" if drafting else "0"),)
        pools = tuple(
            RolePool(role=role, tp=8, ep=8 if expert else 1, dp_attention=attention, settings=settings)
            for role in _ROLES
        )
        yield Point(
            config_key=f"{key}-mtp" if drafting else key,
            image=image,
            model=model.name,
            model_prefix=key.partition("-")[0],
            precision="unknown",
            framework="sglang-disagg",
            runner="mi355x",
            multinode=True,
            disagg=True,
            topology=Topology(pools=pools),
            workload=FixedSeqLen(isl=8192, osl=1024),
            concurrency=64,
            spec_decoding="mtp" if drafting else "none",
            kv_transfer=backend,
        )


def _compared(model: ModelEntry, pool: RolePool, point: Point, actual: Mapping[str, Values]) -> Iterator[str]:
    """Yield what differs from the flags that the file's own reader would put together."""
    expected = {
        **_flags(model, "base_flags"),
        **_role_flags(model, pool.role),
        **_block_flags(model, pool.role, "no_dp"),
    }
    if (pool.ep or 1) > 1:
        expected |= {**_block_flags(model, pool.role, "ep_only"), **_flags(model, "ep_flags")}
    if pool.dp_attention:
        expected |= {**_flags(model, "dp_flags"), **_block_flags(model, pool.role, "dp")}
    if point.spec_decoding == "mtp":
        expected |= {
            **_flags(model, "mtp_flags"),
            "speculative-num-steps": ("3",),
            "speculative-num-draft-tokens": ("4",),
        }
    for name, values in expected.items():
        wanted = tuple(word for value in values for word in _computed(value, pool.tp))
        if actual.get(name) != wanted and not (name == "speculative-eagle-topk" and "speculative-eagle-topk" in actual):
            yield f"{model.place} {pool.role}: {name} {' '.join(wanted)} was found, {actual.get(name)} is given"


def _computed(value: str, tp: int) -> Iterator[str]:
    if match := re.fullmatch(r"(\d+)\.\.(\d+)", value):
        yield from (str(number) for number in range(int(match[1]), int(match[2]) + 1))
    elif value.startswith("${"):
        factors = re.sub(r"(prefill|decode)_tp", str(tp), value[2:-1]).split("*")
        total = 1
        for factor in factors:
            total *= int(factor)
        yield str(total)
    else:
        yield value
