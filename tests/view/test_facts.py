"""Every fact of a row's origin is told once, with a name in both languages."""

from collections.abc import Iterator
from typing import get_args, get_origin

from pydantic import BaseModel

from prony.base.model import Frozen
from prony.measure.result import Machine, Provenance, RoleCommand
from prony.view.facts import _NAMES, Fact, facts
from prony.view.words import point_label
from tests.view.rows import local


def told() -> dict[str, Fact]:
    return {fact.key: fact for fact in facts(local(1))}


def recorded(kind: type[BaseModel]) -> Iterator[str]:
    """The dotted names of everything a provenance can hold."""
    for name, field in kind.model_fields.items():
        parts = () if get_origin(field.annotation) is tuple else get_args(field.annotation)
        shapes = [one for one in (field.annotation, *parts) if isinstance(one, type)]
        inner = next((one for one in shapes if issubclass(one, Frozen) and one is not Machine), None)
        yield from [name] if inner is None else [f"{name}.{part}" for part in inner.model_fields]


def test_all_that_provenance_can_hold_has_a_name_in_both_languages() -> None:
    names = set(recorded(Provenance)) - {"image", "model.id", "client.started_unix_s"}
    assert len(names) > 20
    assert names - set(_NAMES) == set()


def test_a_measured_row_s_key_is_told_once() -> None:
    row = local(1)
    assert [fact.key for fact in facts(row) if row.key in fact.values] == ["key"]


def test_a_command_is_told_as_it_can_be_typed() -> None:
    provenance = local(1).provenance
    assert provenance is not None
    command = RoleCommand(role="agg", replicas=1, command=("serve", "--port", "{port:http}", "a b"))
    changed = provenance.model_copy(update={"commands": (command,)})
    (fact,) = (one for one in facts(local(1, provenance=changed)) if one.key == "commands")
    assert (fact.kind, fact.values) == ("command", ("serve --port {port:http} 'a b'",))


def test_what_is_not_known_is_left_out_and_kinds_say_how_to_write_it() -> None:
    found = told()
    assert "image_digest" not in found
    kinds = {name: found[name].kind for name in ("recipe_digest", "started_at", "topology", "seed")}
    assert kinds == {"recipe_digest": "digest", "started_at": "moment", "topology": "terms", "seed": "text"}
    assert point_label(local(1)).endswith("1 concurrent")
