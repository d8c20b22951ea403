FROM read_las('scan.laz')
