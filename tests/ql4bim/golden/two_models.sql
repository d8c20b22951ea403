WITH b AS (FROM read_ifc_objects('other.ifc')), walls AS (FROM b WHERE is_a(ifc_class, 'IfcWall')), a AS (FROM read_ifc_objects('house.ifc')) FROM walls ANTI JOIN a USING (global_id)
