"""Terrain grids: GeoTIFF, ESRI ASCII, SRTM .hgt, USGS .dem and .npy files."""
