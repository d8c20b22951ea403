"""What a spatial function is: its declaration, the catalogue of all, and what is derived."""
