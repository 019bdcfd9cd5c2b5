"""What Airflow reads of the environment when it is imported."""

SETTINGS = {
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",  # operators may be executed without a task instance
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
    "AIRFLOW__METRICS__TIMER_UNIT_CONSISTENCY": "True",  # else each import warns
    "AIRFLOW_CONN_AWS_DEFAULT": "aws://",  # keys and endpoint as boto3 finds them
}
