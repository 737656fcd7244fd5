"""The API key of a target, read from the environment where it is used."""

import os

from prony.base.errors import LaunchError
from prony.load.request import Target


def auth_headers(target: Target) -> dict[str, str]:
    """Return the Authorization header, the key read from the environment. Raises LaunchError when it is not set."""
    if target.api_key_env is None:
        return {}
    key = os.environ.get(target.api_key_env, "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise LaunchError(
            f"the environment variable {target.api_key_env} holds no API key", fix=f"export {target.api_key_env}=…"
        )
    return {"Authorization": f"Bearer {key}"}
