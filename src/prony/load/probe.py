"""What a server is that somebody else has started: the name of its model, whose tokenizer endpoints it has."""

from prony.base.errors import LaunchError
from prony.load.ask import ask
from prony.load.request import Target, Tokenizer


def only_model(target: Target) -> str:
    """Return the name of the one model that a server offers. Raises LaunchError when there is not exactly one."""
    status, told = ask(target, "GET", "/v1/models")
    models = told.get("data") if isinstance(told, dict) else None
    listed = models if isinstance(models, list) else []
    names = [str(model["id"]) for model in listed if isinstance(model, dict) and "id" in model]
    if status == 200 and len(names) == 1:
        return names[0]
    what = f"{target.url}: offers {len(names)} models" if names else f"{target.url}/v1/models: names no model"
    raise LaunchError(what, allowed=", ".join(names), fix="say which one with --model NAME")


def find_tokenizer(target: Target) -> Tokenizer:
    """Return whose tokenizer endpoints a server has; `ids` when it has none that is known. Raises LaunchError."""
    status, told = ask(target, "GET", "/props")
    if status == 200 and isinstance(told, dict) and "total_slots" in told:
        return "llamacpp"
    status, told = ask(target, "POST", "/tokenize", {"model": target.model, "prompt": "a"})
    if status == 200 and isinstance(told, dict) and isinstance(told.get("tokens"), list) and "count" in told:
        return "vllm"
    return "ids"
