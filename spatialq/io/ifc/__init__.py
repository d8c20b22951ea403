"""Building models: IFC files."""
