"""QL4BIM scripts: from a text to the steps of a query."""
