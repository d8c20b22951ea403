"""One call of a function: arguments checked, device chosen, kernel run, log written."""
