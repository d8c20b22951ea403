"""Selector strings of IfcOpenShell, such as ``IfcWall, Pset_WallCommon.FireRating=2HR``, as SQL."""
