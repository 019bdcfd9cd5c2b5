import os

import boto3

name = os.environ["HF_SECRET_NAME"]  # environment={"HF_SECRET_NAME": "prod/hf"} of the estimator
os.environ["HF_TOKEN"] = boto3.client("secretsmanager").get_secret_value(SecretId=name)["SecretString"]
