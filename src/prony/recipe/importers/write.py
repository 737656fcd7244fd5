"""From a found launch to a recipe's text, as plain maps: what all roles share, what each adds."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from prony.recipe.engines.flags import Flag
from prony.recipe.engines.table import ENGINES
from prony.recipe.importers.launch import Found, FoundRole, Values

Plain = dict[str, Any]


def recipe_text(found: Found, keys: Iterable[str]) -> str:
    """Return the text of a recipe that serves a launch at the points of some keys."""
    plain: Plain = {"schema": 1, "engine": found.engine, "keys": list(keys), "python": "python3"}
    free: dict[str, dict[str, Values]] = {role.pool.role: free_args(found, role) for role in found.roles}
    beyond = _beyond(found, free.values())
    if beyond:
        plain["flags"] = beyond
    if found.router is not None:
        router: Plain = {"kind": found.router}
        router |= {"args": _scalars(found.router_args)} if found.router_args else {}
        router |= {"env": dict(found.router_env)} if found.router_env else {}
        plain["topology"] = {"router": router}
    plain["roles"] = _roles(found, free)
    if found.offload_ratio is not None:
        plain["kv_offload"] = {"ratio": _number(found.offload_ratio)}
    if found.spec is not None:
        plain["rules"] = [{"when": {"spec_decoding": found.spec_decoding}, "spec": dict(found.spec)}]
    head = f"# Imported from {found.place}.\n" + "".join(f"# Left out: {note}\n" for note in found.notes)
    return head + yaml.safe_dump(plain, sort_keys=False, width=110, allow_unicode=True)


def free_args(found: Found, role: FoundRole) -> dict[str, Values]:
    """Return the flags of a role that no typed thing owns."""
    owned = {flag.name for flag in ENGINES[found.engine].flags(found.image) if flag.owner}
    return {name: values for name, values in role.args.items() if name not in owned}


def _beyond(found: Found, roles: Iterable[Mapping[str, Values]]) -> dict[str, str]:
    """Return the kinds of flags that the tables of the image's release lack, or know otherwise."""
    router = ENGINES[found.engine].router_flags.get(found.router or "")
    beyond = beyond_table(found.engine, found.image, roles)
    if router is not None:
        beyond |= _not_in(router(), [found.router_args])
    return dict(sorted(beyond.items()))


def beyond_table(engine: str, image: str, all_args: Iterable[Mapping[str, Values]]) -> dict[str, str]:
    """Return the kinds of the flags that an engine's table of an image's release lacks, or knows otherwise."""
    return dict(sorted(_not_in(ENGINES[engine].flags(image), all_args).items()))


def _not_in(flags: Iterable[Flag], all_args: Iterable[Mapping[str, Values]]) -> dict[str, str]:
    known = {flag.name: flag for flag in flags}
    beyond = {}
    for name, values in (item for args in all_args for item in args.items()):
        flag = known.get(name) or known.get(f"{name.partition('.')[0]}.")
        if flag is None or (not flag.owner and not flag.name.endswith(".") and _strange(flag, values)):
            beyond[name] = _kind(values)
    return beyond


def _strange(flag: Flag, values: Values) -> bool:
    """Say whether the table's release would not take these values: the image's own does."""
    if flag.kind == "switch":
        return bool(values)
    if any("${" in value or ".." in value for value in values):
        return False  # computed at each point
    several = len(values) > 1 and not (flag.many or flag.repeats)
    return not values or several or any(flag.fault(value) is not None for value in values)


def _kind(values: Values) -> str:
    if not values:
        return "switch"
    for kind, read in (("int", int), ("float", float)):
        try:
            for value in values:
                read(value)
        except ValueError:
            continue
        return kind
    return "text"


def _roles(found: Found, free: Mapping[str, Mapping[str, Values]]) -> Plain:
    """Return the roles: what every one has under `all`, the rest under each."""
    if len(found.roles) == 1:
        (role,) = found.roles
        return {"agg": _part(free[role.pool.role], role.env)} if free[role.pool.role] or role.env else {"agg": {}}
    args = _shared([free[role.pool.role] for role in found.roles])
    env = _shared([role.env for role in found.roles])
    plain: Plain = {"all": _part(args, env)} if args or env else {}
    for role in found.roles:
        own = {name: values for name, values in free[role.pool.role].items() if name not in args}
        own_env = {name: value for name, value in role.env.items() if name not in env}
        if own or own_env:
            plain[role.pool.role] = _part(own, own_env)
    return plain


def _shared(maps: list[Mapping[str, Any]]) -> dict[str, Any]:
    first, *others = maps
    return {name: value for name, value in first.items() if all(other.get(name) == value for other in others)}


def _part(args: Mapping[str, Values], env: Mapping[str, str]) -> Plain:
    part: Plain = {"args": _scalars(args)} if args else {}
    return part | ({"env": dict(sorted(env.items()))} if env else {})


def _scalars(args: Mapping[str, Values]) -> Plain:
    return {name: plain_value(values) for name, values in sorted(args.items())}


def plain_value(values: Values) -> Any:
    """Return what YAML holds for a flag: true for a bare one, numbers as numbers where that changes nothing."""
    if not values:
        return True
    plain = [_number(value) for value in values]
    return plain[0] if len(plain) == 1 else _range(plain)


def _range(values: list[Any]) -> Any:
    """Return `first..last` for a run of whole numbers, else the list."""
    if all(isinstance(value, int) for value in values) and values == list(range(values[0], values[0] + len(values))):
        return f"{values[0]}..{values[-1]}"
    return values


def _number(value: str) -> Any:
    for read in (int, float):
        try:
            if str(read(value)) == value:
                return read(value)
        except ValueError:
            continue
    return value
