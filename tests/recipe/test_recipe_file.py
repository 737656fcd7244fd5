"""A recipe file that is not right says where and what is allowed."""

import pytest

from prony.base.errors import ConfigError
from tests.recipe.points import SIM_PARENT, catalogue

FAULTS = {
    "an unknown key": ("schema: 1\nengin: sim\n", "a.yaml:2", "did you mean 'engine'"),
    "no schema": ("engine: sim\n", "a.yaml:1", "'schema' is missing"),
    "another schema": ("schema: 2\n", "a.yaml:1", "schema"),
    "an unknown role": ("schema: 1\nroles:\n  aggg: {}\n", "a.yaml:3", "did you mean 'agg'"),
    "an unknown role field": ("schema: 1\nroles:\n  agg:\n    arg: {}\n", "a.yaml:4", "did you mean 'args'"),
    "an unknown model field": ("schema: 1\nmodel: {id: x,\n  file: 3}\n", "a.yaml:3", "did you mean 'files'"),
    "false as an argument": ("schema: 1\nroles:\n agg:\n  args:\n   x: false\n", "a.yaml:5", "must be a value, true"),
    "a map as an argument": ("schema: 1\nroles:\n agg:\n  args:\n   x: {a: 1}\n", "a.yaml:5", "text or a number"),
    "true in a list": ("schema: 1\nroles:\n agg:\n  args:\n   x: [1, true]\n", "a.yaml:5", "put true and false in"),
    "a switch in the environment": ("schema: 1\nenv:\n  A: true\n", "a.yaml:3", "put it in quotes"),
    "an unknown name in an expression": ("schema: 1\nenv:\n  A: '${cnc}'\n", "a.yaml:3", "'cnc' is not known here"),
    "a home directory": ("schema: 1\nenv:\n  A: '${HOME}/x'\n", "a.yaml:3", "'HOME' is not known here"),
    "a duration without a unit": ("schema: 1\nready:\n  timeout: 30\n", "a.yaml:3", "30m or 1h"),
    "a digest that is none": ("schema: 1\nimage: {ref: x,\n digest: abc}\n", "a.yaml:3", "digest"),
    "a location of an unknown kind": ("schema: 1\nmodel:\n  location: s3://x\n", "a.yaml:3", "location"),
    "a size that is text": (
        "schema: 1\nmodel:\n  files:\n  - name: x\n    size_bytes: big\n",
        "a.yaml:5",
        "size_bytes",
    ),
    "an unknown method": ("schema: 1\nspec:\n  method: magic\n", "a.yaml:3", "draft_model"),
    "a rule without when": ("schema: 1\nrules:\n - engine: sim\n", "a.yaml:3", "'when' is missing"),
    "a rule that changes nothing": ("schema: 1\nrules:\n - when: {conc: 1}\n", "a.yaml:3", "changes nothing"),
    "an unknown field in when": ("schema: 1\nrules:\n - when: {con: 1}\n   engine: x\n", "a.yaml:3", "mean 'conc'"),
    "text for a number": ("schema: 1\nrules:\n - when: {conc: many}\n   engine: x\n", "a.yaml:3", "can't be 'many'"),
    "a number for text": ("schema: 1\nrules:\n - when: {precision: 8}\n   engine: x\n", "a.yaml:3", "can't be 8"),
    "a comparison of text": ("schema: 1\nrules:\n - when: {disagg: '>1'}\n   engine: x\n", "a.yaml:3", "can't be '>1'"),
    "a NUL in a variable": ('schema: 1\nenv:\n A: "a\\0b"\n', "a.yaml:3", "holds a NUL character"),
    "a NUL in an argument": ('schema: 1\nroles: {agg: {args: {\n x: "\\0"}}}\n', "a.yaml:3", "holds a NUL character"),
    "a NUL in a model": ('schema: 1\nmodel:\n id: "\\0"\n', "a.yaml:3", "holds a NUL character"),
    "half a character": ('schema: 1\nenv:\n A: "\\ud800"\n', "a.yaml:3", "Unicode character"),
    "a variable's name": ("schema: 1\nenv:\n A=B: x\n", "a.yaml:3", "'A=B' can't be the name of an environment"),
    "an endless wait": ("schema: 1\nready:\n timeout: 99999999h\n", "a.yaml:3", "at most 720h"),
    "a label that can't be": (
        "schema: 1\nrules:\n - when: {spec_decoding: eagle}\n   engine: x\n",
        "a.yaml:3",
        "none, mtp, draft_model",
    ),
    "a null that deletes nothing": ("schema: 1\nengine: sim\nenv:\n  A: null\n", "a.yaml:4", "no layer before"),
    "thirteen rules": ("schema: 1\nrules:\n" + " - {when: {conc: 1}, engine: x}\n" * 13, "a.yaml:2", "12"),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_in_a_recipe_is_told_with_file_line_and_reason(what: str) -> None:
    text, place, reason = FAULTS[what]
    with pytest.raises(ConfigError) as error:
        catalogue(a=text)
    assert str(error.value).startswith(place), str(error.value)
    assert reason in str(error.value)


def test_a_missing_parent_is_named_with_what_was_perhaps_meant() -> None:
    with pytest.raises(ConfigError, match=r"child.yaml:2 .*there is no recipe 'parnt' \(did you mean 'parent'\?\)"):
        catalogue(parent=SIM_PARENT, child="schema: 1\nextends: parnt\n")


def test_recipes_that_extend_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="a → b → a"):
        catalogue(a="schema: 1\nextends: b\n", b="schema: 1\nextends: a\n")


def test_more_than_four_layers_are_refused() -> None:
    layers = {f"r{n}": f"schema: 1\nextends: r{n - 1}\n" for n in range(1, 5)}
    with pytest.raises(ConfigError, match="too many layers: r4 → r3 → r2 → r1 → r0"):
        catalogue(r0=SIM_PARENT, **layers)


def test_a_child_may_delete_only_what_a_layer_before_it_set() -> None:
    catalogue(parent=SIM_PARENT, child="schema: 1\nextends: parent\nroles: {agg: {args: {itl-ms: null}}}\n")
    with pytest.raises(ConfigError, match=r"child.yaml:3: 'roles.agg.args.slots: null'"):
        catalogue(parent=SIM_PARENT, child="schema: 1\nextends: parent\nroles: {agg: {args: {slots: null}}}\n")
