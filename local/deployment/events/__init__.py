"""EventBridge and its scheduler: patterns, rules, deliveries and their faults."""
