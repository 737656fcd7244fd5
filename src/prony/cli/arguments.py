"""Options that several commands share; light, since every command's parser is built at start."""

import argparse
from pathlib import Path

DEFAULT_STORE = Path("prony-out/store.db")


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Add CONFIG… and the options that say where its companions are."""
    parser.add_argument("config", nargs="+", type=Path, metavar="CONFIG", help="master config (YAML)")
    parser.add_argument("--keys", nargs="+", metavar="KEY", help="only these config keys; * and ? match")
    parser.add_argument("--runner-config", type=Path, metavar="FILE", help="default: runners.yaml beside CONFIG")


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that also resolve recipes and load."""
    parser.add_argument("--load", type=Path, metavar="FILE", help="load rules; default: load.yaml beside CONFIG")
    parser.add_argument("--recipes", type=Path, metavar="DIR", help="default: recipes/ beside CONFIG")


def add_store_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where results are kept."""
    parser.add_argument("--store", default=str(DEFAULT_STORE), metavar="PATH", help=f"default: {DEFAULT_STORE}")
