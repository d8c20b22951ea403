"""The planner: which device runs a call, and why."""
