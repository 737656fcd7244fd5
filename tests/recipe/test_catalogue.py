from pathlib import Path

import pytest

from prony.base.errors import ConfigError
from prony.recipe.catalogue import load_catalogue
from tests.recipe.points import SIM_PARENT, catalogue

CASE = "schema: 1\nextends: parent\nkeys: ['sim-*']\n"


def test_the_file_of_the_keys_own_name_comes_first() -> None:
    recipes = catalogue(parent=SIM_PARENT, case=CASE, sim__a="schema: 1\nextends: parent\n")
    assert recipes.find("sim-a").name == "sim-a"
    assert recipes.find("sim-b").name == "case"


def test_a_parent_serves_no_key_by_its_globs() -> None:
    recipes = catalogue(parent=SIM_PARENT + "keys: ['*']\n", case=CASE)
    assert recipes.find("sim-b").name == "case"


def test_two_recipes_for_one_key_are_refused_with_both_files() -> None:
    recipes = catalogue(parent=SIM_PARENT, case=CASE, other="schema: 1\nextends: parent\nkeys: ['*-b']\n")
    with pytest.raises(ConfigError, match=r"several recipes: case.yaml, other.yaml") as error:
        recipes.find("sim-b")
    assert "narrow" in error.value.fix


def test_no_recipe_for_a_key_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match="no recipe serves 'dsr1-fp8'") as error:
        catalogue(parent=SIM_PARENT, case=CASE).find("dsr1-fp8")
    assert "case: sim-*" in error.value.allowed
    assert "dsr1-fp8.yaml" in error.value.fix


def test_recipes_are_read_from_directories_and_their_names_must_differ(tmp_path: Path) -> None:
    for folder in ("one", "two/deep"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "sim.yaml").write_text(SIM_PARENT)
    one = load_catalogue([tmp_path / "one"])
    assert set(one.recipes) - one.shipped == {"sim"}
    with pytest.raises(ConfigError, match=f"no recipe in {tmp_path}/one serves 'other'"):
        one.find("other")
    with pytest.raises(ConfigError, match="two recipes are called 'sim'"):
        load_catalogue([tmp_path / "one", tmp_path / "two"])


def test_a_directory_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such directory of recipes"):
        load_catalogue([tmp_path / "nowhere"])


def test_a_recipe_of_ones_own_comes_before_the_shipped_one_of_the_keys_name(tmp_path: Path) -> None:
    key = "qwen3.5-fp4-mi355x-sglang"
    mine = f"schema: 1\nextends: sglang-mi355x\nkeys: [{key}]\n"
    assert load_catalogue([tmp_path]).find(key).name == key
    (tmp_path / "mine.yaml").write_text(mine)
    assert load_catalogue([tmp_path]).find(key).name == "mine"
    (tmp_path / f"{key}.yaml").write_text(mine)
    assert load_catalogue([tmp_path]).find(key).file == str(tmp_path / f"{key}.yaml")
