// The SDK for JavaScript v3 through the gateway: no hook, only the variable that the gateway prints.
const fs = require("node:fs");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const {
  SageMakerClient, CreateTrainingJobCommand, DescribeTrainingJobCommand,
} = require("@aws-sdk/client-sagemaker");

// The package does not export its own description, so it is read as a file.
const description = path.join(process.env.NODE_PATH, "@aws-sdk/client-sagemaker/package.json");
const { version } = JSON.parse(fs.readFileSync(description, "utf8"));

async function main() {
  const wanted = JSON.parse(fs.readFileSync(process.env.DOOR_REQUEST, "utf8"));
  const client = new SageMakerClient({ region: process.env.AWS_DEFAULT_REGION });
  const statuses = [];
  await client.send(new CreateTrainingJobCommand(wanted));
  for (;;) {
    const job = await client.send(new DescribeTrainingJobCommand({ TrainingJobName: wanted.TrainingJobName }));
    const found = [job.TrainingJobStatus, job.SecondaryStatus];
    if (JSON.stringify(found) !== JSON.stringify(statuses.at(-1))) {
      statuses.push(found);
      write(null, statuses);
      console.log(found.join(" "));
    }
    if (["Completed", "Failed", "Stopped"].includes(found[0])) break;
    await sleep(1000);
  }
  write(`@aws-sdk/client-sagemaker ${version}`, statuses);
}

// Whoever reads the file meanwhile reads the one before.
function write(client, statuses) {
  const draft = `${process.env.DOOR_FACTS}.new`;
  fs.writeFileSync(draft, JSON.stringify({ client, statuses }));
  fs.renameSync(draft, process.env.DOOR_FACTS);
}

main();
