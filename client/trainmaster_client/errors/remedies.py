"""Causes and remedies of each trouble: the texts of the guide to troubles."""

from collections.abc import Mapping

from trainmaster_client.errors.troubles import Advice, Trouble

_T = Trouble

ADVICE: Mapping[Trouble, Advice] = {
    _T.NO_API_URL: Advice(
        cause="Nothing says where the API is.",
        remedy="export TRAINMASTER_API_URL=<the stack's output ApiUrl>; whoever deployed the stack knows it.",
    ),
    _T.BAD_API_URL: Advice(
        cause="This is not a URL that signed requests can go to.",
        remedy="Take the stack's output ApiUrl as it is: https://<host>/<stage>, without query or user name.",
    ),
    _T.PLAIN_HTTP: Advice(
        cause="Plain http would show requests and session tokens to the network.",
        remedy="Write https:// before the host; http:// is for this machine alone.",
    ),
    _T.NO_STAGE: Advice(
        cause="The URL ends with the host; the stage is missing.",
        remedy="Put the stage at its end, as in the stack's output ApiUrl: https://<host>/prod.",
    ),
    _T.HOST_UNKNOWN: Advice(
        cause="This machine's DNS does not know the host: a typing error, or a network without the API.",
        remedy="Compare it with the stack's output ApiUrl, then connect to the network of the VPC (VPN).",
    ),
    _T.PUBLIC_ADDRESS: Advice(
        cause="The host has a public address, where a private API does not answer.",
        remedy="Use the URL with the id of the VPC endpoint in it: the stack's output ApiUrl.",
    ),
    _T.NOTHING_LISTENS: Advice(
        cause="The host is there, but nothing listens on this port.",
        remedy="Check host and port; a local twin has to be running: trainmaster local up.",
    ),
    _T.NO_WAY: Advice(
        cause="The host does not answer: no route to it, or a firewall between.",
        remedy="Connect to the network of the VPC; the endpoint's security group must let port 443 in.",
    ),
    _T.TLS: Advice(
        cause="No trusted TLS connection: a certificate that is not trusted here, or a port without TLS.",
        remedy="Check https:// and port; if a proxy opens TLS, name its certificates in AWS_CA_BUNDLE.",
    ),
    _T.PROXY: Advice(
        cause="The proxy of HTTPS_PROXY or HTTP_PROXY did not connect to the API.",
        remedy="A private API needs no proxy: add its host to NO_PROXY.",
    ),
    _T.NO_ANSWER: Advice(
        cause="The connection was made, but no answer came.",
        remedy="Try again; if it persists, ask whoever runs the network, or see the alarms of the stack.",
    ),
    _T.NOT_THE_API: Advice(
        cause="Something else answers there: a proxy, a sign-in page, another service.",
        remedy="Compare the URL with the stack's output ApiUrl, stage included; look for a proxy in between.",
    ),
    _T.CLOCK: Advice(
        cause="The clock of this machine is wrong, so its signatures look expired or not yet valid.",
        remedy="Set the clock: sudo chronyc makestep, or switch on time synchronisation.",
    ),
    _T.NO_CREDENTIALS: Advice(
        cause="There are no AWS credentials to sign with.",
        remedy="Sign in as for the AWS CLI: aws sso login, aws configure, or AWS_PROFILE=<profile>.",
    ),
    _T.CREDENTIALS_UNREADABLE: Advice(
        cause="The AWS credentials that are configured cannot be loaded.",
        remedy="See what `aws sts get-caller-identity` says; often: aws sso login, or another AWS_PROFILE.",
    ),
    _T.NO_REGION: Advice(
        cause="No AWS region is configured, and the URL does not name one.",
        remedy="export AWS_DEFAULT_REGION=<region of the stack>.",
    ),
    _T.EXPIRED_CREDENTIALS: Advice(
        cause="The AWS credentials have expired.",
        remedy="To log in again: aws sso login, or as you got these; restart what was given keys of its own.",
    ),
    _T.UNKNOWN_KEY: Advice(
        cause="AWS does not know this access key, or the session token does not belong to it.",
        remedy="Look for a stale AWS_ACCESS_KEY_ID or AWS_SESSION_TOKEN in the environment; sign in again.",
    ),
    _T.WRONG_SIGNATURE: Advice(
        cause="The signature does not match: a wrong secret key, another region, or a proxy in between.",
        remedy="Run trainmaster doctor, which tells them apart.",
    ),
    _T.WRONG_SECRET: Advice(
        cause="The secret key does not belong to the access key.",
        remedy="Set AWS_SECRET_ACCESS_KEY again, without spaces or line ends, or sign in again.",
    ),
    _T.WRONG_REGION: Advice(
        cause="The keys are right, but the request is signed for another region than the API's.",
        remedy="export AWS_DEFAULT_REGION=<region of the stack>; if it is so, a proxy changes the request.",
    ),
    _T.WRONG_STAGE: Advice(
        cause="The gateway has nothing under this path: another stage, or a proxy removed the signature.",
        remedy="Compare the URL with the stack's output ApiUrl: its end must be the stage, such as /prod.",
    ),
    _T.WRONG_ENDPOINT: Advice(
        cause="The gateway does not know this API from this network: another VPC endpoint, API id or stage.",
        remedy="Use the stack's output ApiUrl; the endpoint must be in the parameter VpcEndpointIds.",
    ),
    _T.DENIED: Advice(
        cause="A policy denies it: the API's own (another VPC endpoint or account), or one of your account.",
        remedy="Ask to be let in (the stack's VpcEndpointIds, CallerAccounts), or to have the deny removed.",
    ),
    _T.NOT_A_CALLER: Advice(
        cause="No policy lets this user or role call the API.",
        remedy="Sign in with a role of the parameter CallerPrincipalArns, or ask for yours to be added.",
    ),
    _T.FORBIDDEN: Advice(
        cause="The gateway refused and did not say why; a web application firewall does that.",
        remedy="Run trainmaster doctor, and show its output to whoever runs the stack.",
    ),
    _T.NO_TEAM: Advice(
        cause="The API let this user or role in, but no team of the policy lists it.",
        remedy="Ask an admin to add it: teams: principals in the policy, then trainmaster policy apply.",
    ),
    _T.TOO_MANY_REQUESTS: Advice(
        cause="There were too many requests at once, or too many jobs, changes or reads of this team.",
        remedy="Wait as long as the answer says, then send the same again: it makes no second job.",
    ),
    _T.API_FAILED: Advice(
        cause="The API itself failed.",
        remedy="Send the same again: it makes no second job. If it persists, see the alarms of the stack.",
    ),
    _T.OLD_CLIENT: Advice(
        cause="This client is older than the stack.",
        remedy="Install the wheel that was made from the checkout of the stack (docs/guides/install.md).",
    ),
    _T.OLD_STACK: Advice(
        cause="The stack is older than this client.",
        remedy="Deploy the stack of this version (make deploy), or install the client of the stack's.",
    ),
    _T.OLD_LIBRARY: Advice(
        cause="A library is of a version that this client was not made for.",
        remedy="Install the wheel again, with the extra of your SDK (docs/guides/install.md).",
    ),
    _T.NO_POOLS: Advice(
        cause="The policy has no pools, so no job can be submitted.",
        remedy="An admin applies a policy: trainmaster policy apply policy.yaml.",
    ),
    _T.PAUSED: Advice(
        cause="An admin paused starts and preemptions; jobs wait.",
        remedy="An admin resumes with: trainmaster policy resume.",
    ),
    _T.POLICY_NOT_UNDERSTOOD: Advice(
        cause="The stack does not understand the stored policy; an earlier revision is in force.",
        remedy="An admin applies a policy that it knows, or deploys the version that wrote it.",
    ),
    _T.OUTDATED_DEFAULTS: Advice(
        cause="The policy was applied before defaults became stricter; it keeps the old ones for now.",
        remedy="An admin writes the intended values, checks with trainmaster policy diff, and applies them.",
    ),
    _T.ROWS_SET_ASIDE: Advice(
        cause="Rows of the table cannot be understood; the jobs they name wait, all else continues.",
        remedy="An admin checks with trainmaster repair, pauses, and runs trainmaster repair --apply.",
    ),
    _T.POOL_ABOVE_QUOTA: Advice(
        cause="A pool is larger than what the account may run at once; jobs beyond that only wait.",
        remedy="Ask for more in the console of Service Quotas, or lower the pool's capacity in the policy.",
    ),
    _T.IDLE_UNWATCHED: Advice(
        cause="Nobody notices GPUs that do nothing: the policy in force has no idle alarms.",
        remedy="An admin removes idle: off, or applies the policy again: trainmaster policy apply.",
    ),
    _T.ACCOUNT_LIMIT: Advice(
        cause="AWS refuses the job, or as many of its type, for a limit of the account.",
        remedy="It is retried automatically; if it persists, ask Service Quotas for more.",
    ),
    _T.STARTS_PAUSED: Advice(
        cause="AWS refuses every start with a role: the jobs wait as refused, and one at a time tries again.",
        remedy="Operators restore what AWS names: a right, PassRole, the role, its subnets or keys.",
    ),
    _T.PLAN_NOT_DESCRIBED: Advice(
        cause="SageMaker does not describe a training plan of the policy: what changed of it is not seen.",
        remedy="Compare its ARN with the account's; `reconcile` needs sagemaker:DescribeTrainingPlan on it.",
    ),
    _T.PLAN_OVER: Advice(
        cause="A training plan of the policy has no window to come: jobs that ask for it alone never start.",
        remedy="Extend it (aws sagemaker extend-training-plan), or remove it from the pool's plans.",
    ),
    _T.PLAN_NOT_NAMED: Advice(
        cause="The account has a training plan that no pool names: the queue runs nothing on it.",
        remedy="Write its ARN into plans of the pool with its type (docs/guides/reserved-capacity.md).",
    ),
    _T.PLAN_IDLE: Advice(
        cause="Instances of a training plan stand idle in an open window, and are paid.",
        remedy="See what waits (trainmaster queue), open it to more teams (plans[].teams), or submit jobs.",
    ),
    _T.NEAR_LIMIT: Advice(
        cause="A limit is nearly reached; beyond it submissions are refused.",
        remedy="Cancel jobs that nobody needs, or raise the limit in the policy (limits.max_waiting).",
    ),
    _T.CONCURRENCY: Advice(
        cause="The account runs nearly as many functions at once as Lambda lets it; more are throttled.",
        remedy="Ask Service Quotas for more concurrent executions, or reserve some (docs/guides/scale.md).",
    ),
    _T.PRICES_ELSEWHERE: Advice(
        cause="Costs and budgets count with list prices of us-east-1, and the stack is elsewhere.",
        remedy="Write the prices of your region into prices of the policy: trainmaster policy apply.",
    ),
    _T.LOGS_UNREADABLE: Advice(
        cause="You may not read the log lines of training jobs.",
        remedy="Ask for logs:DescribeLogStreams and logs:GetLogEvents on /aws/sagemaker/TrainingJobs.",
    ),
    _T.PARAMETER_MISSING: Advice(
        cause="The SSM parameter that names the API cannot be read here.",
        remedy="Keep TRAINMASTER_API_URL set, or ask for ssm:GetParameter on /trainmaster/api-url.",
    ),
    _T.PARAMETER_DIFFERS: Advice(
        cause="The SSM parameter names another API than the one in use here.",
        remedy="unset TRAINMASTER_API_URL if the parameter is right; two stacks need two parameters.",
    ),
    _T.ROLE_MISSING: Advice(
        cause="The policy lists a training role that does not exist.",
        remedy="Make the role, or correct roles of the team in the policy: trainmaster policy apply.",
    ),
    _T.ROLE_NOT_TRUSTING: Advice(
        cause="A training role does not let SageMaker assume it.",
        remedy="Let its trust policy allow sts:AssumeRole to the service sagemaker.amazonaws.com.",
    ),
    _T.GPU_METRICS_MISSING: Advice(
        cause="A training role may not publish GPU metrics, so idle alarms of its jobs never go off.",
        remedy="Allow it cloudwatch:PutMetricData, as docs/guides/iam/training-role.json does.",
    ),
    _T.VOLUME_KEYS: Advice(
        cause="Neither the training role nor the stack has kms:CreateGrant on a key that jobs may name.",
        remedy="Allow the training roles kms:CreateGrant on it, or list it in TrainingKmsKeyArns and deploy.",
    ),
    _T.CHECKPOINT_KEYS: Advice(
        cause="The stack may not use the key of a checkpoint bucket: ages of checkpoints are lower bounds.",
        remedy="List the key in the stack's parameter CheckpointKmsKeyArns and deploy.",
    ),
    _T.TABLE_KEY: Advice(
        cause="You lack rights on the table's KMS key that are needed only for a deployment.",
        remedy="Whoever deploys needs the six KMS actions that the guide to deployment lists.",
    ),
    _T.DIRECT_STARTS: Advice(
        cause="You may also start training jobs that bypass the queue.",
        remedy="Only IAM can enforce the queue: deny sagemaker:CreateTrainingJob to users.",
    ),
    _T.MAIL_UNCONFIRMED: Advice(
        cause="Mails of the stack do not reach these people: no confirmed subscription to its mail topic.",
        remedy="Subscribe them (docs/guides/deploy.md) and follow the link in the first mail.",
    ),
    _T.OPERATOR_ALARM: Advice(
        cause="An alarm of the stack is in state ALARM: a function fails, or a message could not be handled.",
        remedy="See the guide for operators; CloudWatch has the alarm and the log of the function.",
    ),
    _T.GATEWAY_SILENT: Advice(
        cause="AWS_ENDPOINT_URL_SAGEMAKER names a gateway that does not answer.",
        remedy="Start it: trainmaster gateway; its exports for programs: trainmaster gateway --print-env.",
    ),
}
