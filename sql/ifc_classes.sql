-- Whether a class is another one or a subtype of it, such as IfcWall of IfcBuildingElement. Names in
-- any case; NULL of a class that is NULL. A supertype that no schema has is an error.
-- ifc_class: A class, such as the column ifc_class of elements and objects.
-- supertype: A class of IFC2X3, IFC4 or IFC4X3. The new name IfcBuiltElement is understood of old
--     models, and IfcBuildingElement of new ones.
-- ifc_schema: IFC2X3, IFC4 or IFC4X3_ADD2, such as the column ifc_schema: that schema's answer,
--     where it has the class. NULL: whether any schema says so.
-- example: SELECT count(*) FROM objects WHERE is_a(ifc_class, 'IfcBuildingElement')
CREATE OR REPLACE MACRO is_a(ifc_class, supertype, ifc_schema := NULL) AS (
    lower(spatialq_text('is_a: ifc_class must be text, got ', ifc_class)) IN (
        SELECT unnest(spatialq_ifc_subtypes(
            spatialq_text('is_a: supertype must be a class, got ', supertype),
            spatialq_text('is_a: ifc_schema must be a schema, got ', ifc_schema)
        ))
    )
);

-- The classes of IFC2X3, IFC4 and IFC4X3_ADD2: one row for each class and each of its supertypes,
-- itself included.
-- gives: ifc_class supertype ifc_schema
-- example: SELECT ifc_class FROM ifc_lineage() WHERE supertype = 'IfcDoor' AND ifc_schema = 'IFC4'
CREATE OR REPLACE MACRO ifc_lineage() AS TABLE
SELECT unnest(spatialq_ifc_lineage_udf(0), max_depth := 2);

-- The inverse attributes of the classes of IFC2X3, IFC4 and IFC4X3_ADD2: one row for each class that
-- declares one; subtypes have it, too.
-- gives: ifc_schema ifc_class inverse_attribute, and the class of the relationship and its attribute
--     by which it names the object: relation_class relation_attribute
-- example: FROM ifc_inverse_attributes() WHERE inverse_attribute = 'HasOpenings'
CREATE OR REPLACE MACRO ifc_inverse_attributes() AS TABLE
SELECT unnest(spatialq_ifc_inverse_attributes_udf(0), max_depth := 2);
