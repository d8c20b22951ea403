"""The generated world of the demo: a village and one of its houses."""
