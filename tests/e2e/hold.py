"""Hold a deployment up until stdin closes: python hold.py DEPLOYMENT.json SCRATCH. Prints name=URL of every process."""

import sys
from pathlib import Path

from prony.base.clock import SystemClock
from prony.recipe.deployment import Deployment
from prony.run import launch
from prony.run.process import Supervisor


def main() -> None:
    deployment = Deployment.model_validate_json(Path(sys.argv[1]).read_bytes())
    scratch = Path(sys.argv[2])
    with Supervisor(str(scratch.resolve()), ()) as owner:
        owner.pump.direct(scratch / "logs")
        server = launch.start(deployment, owner, "held", SystemClock(), scratch)
        urls = [f"{one.process.name}=http://127.0.0.1:{one.ports['http']}" for one in server.replicas]
        print(" ".join(urls), flush=True)
        while sys.stdin.read(1):
            pass


if __name__ == "__main__":
    main()
