// The SDK for JavaScript v3 as a user writes it: what it saw of a job from its wait to its end, as JSON.
const fs = require("node:fs");
const {
  SageMakerClient, CreateTrainingJobCommand, DescribeTrainingJobCommand, ListTrainingJobsCommand,
  StopTrainingJobCommand, waitUntilTrainingJobCompletedOrStopped,
} = require("@aws-sdk/client-sagemaker");

const [requestFile, endOfTheOther] = process.argv.slice(2);
const request = JSON.parse(fs.readFileSync(requestFile, "utf8"));
const name = request.TrainingJobName;
const client = new SageMakerClient({ region: process.env.AWS_DEFAULT_REGION });
const looks = { client, maxWaitTime: 120, minDelay: 1, maxDelay: 2 };

async function status(job) {
  const seen = await client.send(new DescribeTrainingJobCommand({ TrainingJobName: job }));
  return [seen.TrainingJobStatus, seen.SecondaryStatus];
}

async function main() {
  const saw = {};
  const first = await client.send(new CreateTrainingJobCommand(request));
  saw.waiting = await status(name);
  const again = await client.send(new CreateTrainingJobCommand(request));
  saw.same_arn = first.TrainingJobArn === again.TrainingJobArn;
  const other = { ...request, HyperParameters: { other: "1" } };
  saw.refused = await client.send(new CreateTrainingJobCommand(other)).catch((error) => error.name);
  const listed = await client.send(new ListTrainingJobsCommand({ NameContains: name }));
  saw.listed = listed.TrainingJobSummaries.map((one) => one.TrainingJobName);
  fs.writeFileSync(endOfTheOther, "");
  await waitUntilTrainingJobCompletedOrStopped(looks, { TrainingJobName: name });
  saw.ended = await status(name);
  const long = { ...request, TrainingJobName: `${name}-long` };
  long.AlgorithmSpecification = { ...request.AlgorithmSpecification, ContainerEntrypoint: ["sleep", "600"] };
  await client.send(new CreateTrainingJobCommand(long));
  await client.send(new StopTrainingJobCommand({ TrainingJobName: long.TrainingJobName }));
  await waitUntilTrainingJobCompletedOrStopped(looks, { TrainingJobName: long.TrainingJobName });
  saw.stopped = await status(long.TrainingJobName);
  console.log(JSON.stringify(saw));
}

main();
