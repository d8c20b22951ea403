"""One module per command. What a command needs is imported when it runs."""
