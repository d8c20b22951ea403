FROM read_points('scan.laz')
