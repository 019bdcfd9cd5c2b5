"""The twin's CloudWatch: metrics, and alarms that are evaluated each minute of the twin's clock."""
