"""Point clouds: LAS, LAZ and COPC files."""
