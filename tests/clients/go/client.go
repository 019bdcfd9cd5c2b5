// The SDK for Go v1 as a user writes it: what it saw of a job from its wait to its end, as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go/aws"
	"github.com/aws/aws-sdk-go/aws/awserr"
	"github.com/aws/aws-sdk-go/aws/request"
	"github.com/aws/aws-sdk-go/aws/session"
	"github.com/aws/aws-sdk-go/service/sagemaker"
)

var client *sagemaker.SageMaker

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func status(name string) []string {
	seen, err := client.DescribeTrainingJob(&sagemaker.DescribeTrainingJobInput{TrainingJobName: &name})
	must(err)
	return []string{*seen.TrainingJobStatus, *seen.SecondaryStatus}
}

func await(name string) {
	input := &sagemaker.DescribeTrainingJobInput{TrainingJobName: &name}
	everySecond := request.WithWaiterDelay(request.ConstantWaiterDelay(time.Second))
	must(client.WaitUntilTrainingJobCompletedOrStoppedWithContext(aws.BackgroundContext(), input, everySecond))
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	must(err)
	var wanted sagemaker.CreateTrainingJobInput
	must(json.Unmarshal(text, &wanted))
	name := *wanted.TrainingJobName
	config := aws.NewConfig().WithEndpoint(os.Getenv("AWS_ENDPOINT_URL_SAGEMAKER"))
	client = sagemaker.New(session.Must(session.NewSession(config.WithRegion(os.Getenv("AWS_DEFAULT_REGION")))))
	saw := map[string]interface{}{}
	first, err := client.CreateTrainingJob(&wanted)
	must(err)
	saw["waiting"] = status(name)
	again, err := client.CreateTrainingJob(&wanted)
	must(err)
	saw["same_arn"] = *first.TrainingJobArn == *again.TrainingJobArn
	other := wanted
	other.HyperParameters = map[string]*string{"other": aws.String("1")}
	_, err = client.CreateTrainingJob(&other)
	saw["refused"] = err.(awserr.Error).Code()
	listed, err := client.ListTrainingJobs(&sagemaker.ListTrainingJobsInput{NameContains: &name})
	must(err)
	names := []string{}
	for _, one := range listed.TrainingJobSummaries {
		names = append(names, *one.TrainingJobName)
	}
	saw["listed"] = names
	must(os.WriteFile(os.Args[2], nil, 0o600))
	await(name)
	saw["ended"] = status(name)
	long, algorithm := wanted, *wanted.AlgorithmSpecification
	long.TrainingJobName = aws.String(name + "-long")
	algorithm.ContainerEntrypoint = aws.StringSlice([]string{"sleep", "600"})
	long.AlgorithmSpecification = &algorithm
	_, err = client.CreateTrainingJob(&long)
	must(err)
	_, err = client.StopTrainingJob(&sagemaker.StopTrainingJobInput{TrainingJobName: long.TrainingJobName})
	must(err)
	await(*long.TrainingJobName)
	saw["stopped"] = status(*long.TrainingJobName)
	must(json.NewEncoder(os.Stdout).Encode(saw))
}
