"""The planner rolled forward: when will a job start?"""
