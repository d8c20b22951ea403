FROM read_ifc_objects('house.ifc')
