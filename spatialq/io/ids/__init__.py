"""IDS 1.0, buildingSMART's Information Delivery Specification: what a model has to hold."""
