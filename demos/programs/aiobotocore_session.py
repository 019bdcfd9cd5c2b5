"""aiobotocore: coroutines, after one ``install()`` for the process."""

import asyncio
import importlib.metadata

from aiobotocore.session import get_session
from trainmaster_client.hook import install

from demos.programs.sight import LOOK_SECONDS, Sight, request


async def main() -> None:
    wanted, sight = request(), Sight()
    async with get_session().create_client("sagemaker") as client:
        await client.create_training_job(**wanted)
        while True:
            if sight.note(await client.describe_training_job(TrainingJobName=wanted["TrainingJobName"])):
                break
            await asyncio.sleep(LOOK_SECONDS)
    sight.write(f"aiobotocore {importlib.metadata.version('aiobotocore')}")


if __name__ == "__main__":
    install()
    asyncio.run(main())
