"""The page behind `spatialq view`: clouds, models, lists and the SQL box, to this machine."""
