"""Lambda: functions as processes under AWS's own runtime client, and what it promises about them."""
