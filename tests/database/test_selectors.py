"""`elements_where` and `objects_where` against IfcOpenShell's own `filter_elements`."""

import random
import re
import warnings

import duckdb
import ifcopenshell
import ifcopenshell.api.aggregate
import ifcopenshell.api.classification
import ifcopenshell.api.group
import ifcopenshell.api.material
import ifcopenshell.api.nest
import ifcopenshell.api.pset
import ifcopenshell.api.root
import ifcopenshell.api.type
import pytest
from ifcopenshell.util.selector import filter_elements

import spatialq
from spatialq.database.selectors import query
from spatialq.errors import FileWarning
from spatialq.io.ifc.model import read_model
from spatialq.io.ifc.tables import SCHEMAS
from tests.conftest import real_file
from tests.io.ifc_models import Builder

SELECTORS = """
IfcWall
IfcWall, IfcSlab
IfcElement
IfcBuildingElement
IfcProduct, !IfcOpeningElement
!IfcWall
IfcWall + IfcDoor
IfcWall +
IfcTypeObject
IfcGroup
IfcProject
IfcObjectDefinition
IfcWall, Name=/W.*/
Name=/W.*/
Name=/(?i)w.*[0-9]/
Name*=-
IfcWall, Name!*=-
Name!=NULL
Name=NULL
OverallHeight>1.5, Name=/.*/
Name=TRUE
Description=NULL
Tag!=NULL
GlobalId=/0.*/
GlobalId!=/[01].*/
PredefinedType=NULL
PredefinedType!=NOTDEFINED
PredefinedType=FLOOR
ObjectType=NULL
ObjectType=/.*/, IfcSlab
OverallHeight>1.5
OverallHeight>=2
OverallHeight=2.01
OverallHeight<2, IfcDoor
OverallHeight!=NULL
OverallWidth!=1
OverallWidth<=1e3
CompositionType=ELEMENT
LongName!=NULL
IfcSpace, LongName=/.*o.*/
IfcBuildingStorey, Elevation>0
IfcBuildingStorey, Elevation<=0
IfcWall, Name=a, IfcSlab
IfcWall, IfcSlab, !IfcWallStandardCase, Name!=NULL
IfcWall /* the walls */, /* all */ Tag!=x
Name="a\\"b"
IfcRoot, Name=/[A-D].*/
IfcDoor, Pset_DoorCommon.FireRating=NULL
IfcDoor, Pset_DoorCommon.FireRating!=NULL
IfcDoor, Pset_DoorCommon.IsExternal=TRUE
IfcDoor, Pset_DoorCommon.IsExternal=true
IfcDoor, /Pset_Door.*/.HygrothermalRating=NULL
Pset_SwitchingDeviceTypeMomentarySwitch.MomentaryType!=NULL
Qto_DoorBaseQuantities.Height>1
Qto_DoorBaseQuantities.Height=NULL, IfcDoor
/Pset_.*Common/.Reference!=NULL
/Pset_.*Common/./Is.*/=TRUE
/Pset_.*Common/./Is.*/!=FALSE
/.*/./Fire.*/!=NULL
/.*/.Reference=NULL
/Pset_.*/.Reference*=a
IfcWall, Pset_WallCommon./.*e.*/!=NULL
Pset_WallCommon./.*e.*/=NULL
Pset_WallCommon./.*e.*/!=TRUE
type=NULL
type!=NULL
type=/.*/
IfcWall, type=/.*00.*/
type*=a
material=NULL
material!=NULL
material=/.*/
material=/.*[bB]eton.*/
material*=Beton
material!=Beton
classification=NULL
classification=/.*/
classification!=x
location=NULL
location!=NULL
location=/.*/
location!=/.*/
location=/E.*|L.*/
location!=/E.*|L.*/
location*=E
IfcWall, location="Level 1"
group=NULL
group=/.*/
group!=/.*/
parent=NULL
parent=/.*/
parent=/E.*|L.*/
parent!=/E.*|L.*/
parent!="Level 1"
query:"storey.Name"=/E.*|L.*/
query:"storey.Name"!=NULL
query:"storey.Elevation">0
query:"building.Name"=/.*/
query:"site.Name"=NULL
query:"space.Name"!=NULL
query:"container.Name"=/.*/
query:"parent.Name"=NULL
query:"parent.class"=IfcBuildingStorey
query:"type.Name"=/.*/
query:"type.class"!=NULL
query:"material.Name"=/.*/
query:"material.Name"=NULL
query:"materials.Name"=/.*/
query:"materials.Name"!=/.*B.*/
query:"classification.Name"=/.*/
query:"group.Name"=/.*/
query:class=IfcSlab
query:predefined_type=NOTDEFINED
query:id>1000
query:Name=/.*/
""".strip().split("\n")

MODELS = (
    pytest.param("AC20-FZK-Haus.ifc", marks=pytest.mark.slow),
    pytest.param("Duplex_A_20110907.ifc", marks=pytest.mark.slow),
    pytest.param("SampleHouse4.ifczip", marks=pytest.mark.slow),
)


def fill(con, path):
    for name, table in read_model(path, geometry="none").tables.items():
        con.register("incoming", table)
        con.execute(f"CREATE OR REPLACE TABLE {name} AS FROM incoming")
        con.unregister("incoming")


def expected(model, selector):
    """What IfcOpenShell selects, of what is a row of `objects`; sorted, as `selected`."""
    found = filter_elements(model, selector)
    return sorted(each.GlobalId for each in found if each.is_a("IfcObjectDefinition"))


def selected(con, selector):
    rows = con.execute("SELECT global_id FROM objects_where($selector)", {"selector": selector})
    return sorted(global_id for (global_id,) in rows.fetchall())


def sentence(con, selector, macro="objects_where"):
    with pytest.raises(duckdb.Error) as caught:
        con.execute(f"FROM {macro}($selector)", {"selector": selector}).fetchall()
    (found,) = re.findall(r"ValueError: (.*)", str(caught.value))
    return found


@pytest.fixture(scope="module")
def con():
    with spatialq.connect() as con:
        yield con


@pytest.mark.parametrize("name", MODELS)
def test_a_hundred_selectors_of_real_models(con, name):
    path = real_file(f"data/ifc/{name}")
    fill(con, path)
    model = ifcopenshell.open(str(path))
    assert len(SELECTORS) > 100
    different, sizes = {}, set()
    for selector in SELECTORS:
        if (wanted := expected(model, selector)) != (found := selected(con, selector)):
            different[selector] = len(wanted), len(found)
        sizes.add(len(wanted))
    assert not different
    assert len(sizes) > 20, "the selectors tell too little of this model apart"


@pytest.mark.parametrize("name", MODELS)
def test_properties_that_a_real_model_lacks(con, name):
    path = real_file(f"data/ifc/{name}")
    fill(con, path)
    model = ifcopenshell.open(str(path))
    names = "Dimensions.Length", "No.Such", '"Dimensions.Length"', "/No_.*/./Such.*/"
    for selector in (
        f"{start}{each}{end}"
        for start in ("", "IfcWall, ", "IfcWall + ")
        for each in names
        for end in (" > 5000", "=NULL", "!=5", "!=NULL")
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert selected(con, selector) == expected(model, selector), selector
        has_it = "Dimensions.Length" in selector and name.startswith("SampleHouse4")
        assert len(told) == (not has_it or '"' in selector)


SET = "Quo'te/d ~set"
VALUES = {
    "Flag": "TRUE",
    "No": "FALSE",
    "Whole": 2,
    "Zero": 0,
    "Real": 2.0,
    "Negative": -1.5,
    "Digits": "2",
    "Word": "true",
    "Text": 'o\'clock "x" /y/',
    "a/b~c.d": "path",
    "Empty": "",
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A model with what the real ones lack."""
    builder = Builder()
    model = builder.model
    api = ifcopenshell.api
    walls = [
        builder.add("IfcWall", name, None)
        for name in ("one", "two", "three", "it's", "é/~", "{}", "Robert'); DROP TABLE objects;--")
    ]
    types = [
        api.root.create_entity(model, ifc_class="IfcWallType", name=name) for name in ("T1", "T2")
    ]
    types[0].PredefinedType, types[0].ElementType = "USERDEFINED", "dry"
    types[1].PredefinedType = "PARAPET"
    api.type.assign_type(model, related_objects=walls[:2], relating_type=types[0])
    api.type.assign_type(model, related_objects=walls[2:3], relating_type=types[1])
    walls[3].PredefinedType, walls[3].ObjectType = "USERDEFINED", "mine"
    labels = {"Digits": "IfcLabel", "Word": "IfcLabel", "Text": "IfcText", "Empty": "IfcLabel"}

    def properties(**values):
        return {
            name: model.create_entity(
                labels.get(name, "IfcLabel")
                if isinstance(value, str) and value not in ("TRUE", "FALSE")
                else "IfcBoolean"
                if isinstance(value, str)
                else "IfcInteger"
                if isinstance(value, int)
                else "IfcReal",
                value == "TRUE" if value in ("TRUE", "FALSE") else value,
            )
            for name, value in values.items()
        }

    for wall, name in ((walls[0], SET), (walls[1], "Other")):
        pset = api.pset.add_pset(model, product=wall, name=name)
        api.pset.edit_pset(model, pset=pset, properties=properties(**VALUES))
    of_type = api.pset.add_pset(model, product=types[0], name="Other")
    api.pset.edit_pset(model, pset=of_type, properties=properties(Whole=7, OfType="x"))
    listed = model.create_entity(
        "IfcPropertyListValue",
        Name="List",
        ListValues=[model.create_entity("IfcLabel", text) for text in ("first", "second")],
    )
    of_type.HasProperties = (*of_type.HasProperties, listed)

    steel, wool = (
        api.material.add_material(model, name=name, category=category)
        for name, category in (("steel", "metal"), ("wool", None))
    )
    layers = api.material.add_material_set(model, name="sandwich", set_type="IfcMaterialLayerSet")
    for material in (steel, wool):
        api.material.add_layer(model, layer_set=layers, material=material)
    api.material.assign_material(model, products=[types[0]], material=layers)
    api.material.assign_material(model, products=[walls[1], walls[3]], material=wool)

    system = api.classification.add_classification(model, classification="Uniclass")
    for products, key, name in ((walls[2:4], "EF_25", "Walls"), (types[:1], "EF_30", "Roofs")):
        api.classification.add_reference(
            model, products=products, identification=key, name=name, classification=system
        )
    group = api.group.add_group(model, name="all of them")
    api.group.assign_group(model, products=walls[:4], group=group)
    part = api.root.create_entity(model, ifc_class="IfcBuildingElementPart", name="part")
    api.aggregate.assign_object(model, products=[part], relating_object=walls[0])
    bolt = api.root.create_entity(model, ifc_class="IfcMechanicalFastener", name="bolt")
    api.nest.assign_object(model, related_objects=[bolt], relating_object=part)
    builder.wall_with_window()
    path = builder.write(tmp_path_factory.mktemp("odd") / "odd.ifc")
    con = spatialq.connect()
    fill(con, path)
    yield con, ifcopenshell.open(str(path))
    con.close()


ODD = (
    *(
        f'"{pset}"."{name}"{operator}{value}'
        for pset, operators in ((SET, ("=", "!=", ">=", "<", "*=")), ("Other", ("!=",)))
        for name in VALUES
        for operator in operators
        for value in ("2", "2.0", "-1.5", "TRUE", "NULL", "true", "1", "x", "nan", '""', "1e400")
        if operator[0] not in "<>" or value[-1].isdigit()
    ),
    *(f'"{SET}".Text={value}' for value in ('"o\'clock \\"x\\" /y/"', "/o.clock/", "/O/")),
    f'"{SET}"."a/b~c.d"=path',
    "Other.List=first",
    "Other.List!=first",
    "Other.List*=eco",
    "Other.List=/s/",
    "Other.List=NULL",
    "Other.OfType=x",
    "/O.*/./W.*/=7",
    "/Q.*/./Digits|W.*/=2",
    *(
        f'Name="{name}"'
        for name in ("it's", "é/~", "{}", "Robert'); DROP TABLE objects;--", "' OR 1=1", "{}")
    ),
    *(f'{facet}="{{}}"' for facet in ("location", "parent", "group", "material", "type")),
    *(
        f"{facet}{operator}{value}"
        for facet, values in {
            "PredefinedType": ("dry", "mine", "PARAPET", "NULL"),
            "type": ("T1", "T2", "NULL", "/T/"),
            "material": ("steel", "metal", "wool", "NULL", "/s|w/"),
            "classification": ("EF_25", "Walls", "EF_30", "/EF/", "NULL"),
            "group": ('"all of them"', "x", "NULL"),
            "location": ('"Ground floor"', "House", "Site", "Test", "one", "NULL", "/.*/"),
            "parent": ('"Ground floor"', "House", "Test", "one", "part", "Wall", "NULL"),
            'query:"material.Name"': ("sandwich", "wool", "NULL", "/.*/"),
            'query:"materials.Name"': ("steel", "wool", "NULL"),
            'query:"type.Other.Whole"': ("7", "2", "NULL"),
            'query:"Other.Whole"': ("7", "2", "NULL"),
            'query:"parent.Name"': ("one", "part", "NULL"),
            'query:"storey.GlobalId"': ("NULL", "/.*/"),
            'query:"classification.Identification"': ("EF_25", "/EF/", "NULL"),
        }.items()
        for operator in ("=", "!=", "*=")
        for value in values
    ),
)


@pytest.mark.slow
def test_what_real_models_lack(odd):
    con, model = odd
    different, sizes = {}, set()
    for selector in ODD:
        if (wanted := expected(model, selector)) != (found := selected(con, selector)):
            different[selector] = len(wanted), len(found)
        sizes.add(len(wanted))
    assert not different
    assert len(sizes) > 10


def test_regular_expressions_match_texts_only(odd):
    con, model = odd
    with pytest.raises(Exception, match="expected string"):
        expected(model, "Other.Whole=/2/")
    assert selected(con, "Other.Whole=/2/") == []


def test_the_rows_are_those_of_the_table(odd):
    con, _ = odd
    con.execute("CREATE SCHEMA s")
    for name in ("objects", "relations", "properties", "materials", "classifications"):
        con.execute(f"CREATE TABLE s.t_{name} AS FROM {name}")
    con.execute(
        "CREATE TABLE s.t AS SELECT global_id, step_id, file_name, 1 AS own FROM objects "
        "WHERE ifc_class = 'IfcWall' AND name <> 'one'"
    )
    selector = 'IfcWall, group="all of them"'
    named = "SELECT name FROM objects_where($s, objects := 's.t_objects')"
    rows = con.execute(named, {"s": selector}).fetchall()
    assert sorted(rows) == [("it's",), ("one",), ("three",), ("two",)]
    for arguments in ("elements := 's.t'", "elements := 's.t', objects := 'objects'"):
        sql = f"SELECT sum(own), count(*) FROM elements_where($s, {arguments})"
        assert con.execute(sql, {"s": selector}).fetchall() == [(3, 3)]


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("", "selector must be a text such as 'IfcWall, Name=W1', got ''"),
        ("IfcWal", "near names are IfcWall, "),
        ("IfcWall, Nme=x", "no class of objects has an attribute 'Nme'; near names are Name"),
        ("IfcWall, HasOpenings=x", "HasOpenings is an inverse attribute and has no value"),
        ("HasOpenings=NULL", "the table relations has its rows of IfcRelVoidsElement"),
        ("IfcDoor, FireRating=X", "no class of objects has an attribute 'FireRating'; a property "),
        ("IfcDoor, FireRating=X", "or /.*/.FireRating for any set, such as Pset_DoorCommon.Fire"),
        ("IfcSlab, FireRating=X", "for any set, such as Pset_SlabCommon.FireRating"),
        ("IfcDoor, Foo=X", "a property is written Set.Property, or /.*/.Foo for any set"),
        ("Pset_DoorCommon=X", "; a property of the set is written Pset_DoorCommon.Property"),
        ("Name>2m", "> compares with a number, which is in the unit of the file and is written wi"),
        ("Other.Real<=2m", "<= compares with a number, which is in the unit of the file and is wr"),
        ("Other.Real>=NULL", "written without a unit, got NULL"),
        ("Other.Real<TRUE", "written without a unit, got TRUE"),
        ("Other.Real<nan", "written without a unit, got 'nan'"),
        ("type>/a.*/", "written without a unit, got /a.*/"),
        ("OverallHeight>2.5m", "it goes on with 'm'; a number is in the unit of the file and is"),
        ("IfcDoor, storey=X", "column 10 of the selector 'storey' is no class, attribute or"),
        ("IfcDoor, storey=X", 'filter; write location=X, or query:"storey.Name"=X'),
        ("IfcDoor,\n storey=X", "at line 2, column 2 of the selector 'storey' is no class,"),
        ("storey.Name=X", "no object has a property set named 'storey'; what belongs to"),
        ("storey.Name=X", 'what belongs to the storey is written query:"storey.Name"'),
        ("IfcDoor, name=X", "near names are Name, LongName"),
        ("IfcDoor, materal=X", "near names are material"),
        ("IfcDoor, xyzzy=X", "filters are type, material, classification, location, group, "),
        ("ifcdoor", "'ifcdoor' is no class, attribute or filter; the class is written IfcDoor"),
        ("IFCDOOR, Name=X", "'IFCDOOR' is no class, attribute or filter; the class is written"),
        ("ifcdor", "near names are IfcDoor"),
        ("IfcDoor; IfcWall", "'IfcDoor;' is no class, attribute or filter; facets are separated"),
        ("IfcDoor; IfcWall", "filter; facets are separated by , and lists of facets by +"),
        ("IfcDoor | IfcWall", "column 9 of the selector + or , must follow, but it goes on with"),
        ("IfcDoor, Name", "a comparison such as = or a point must follow, but it ends"),
        ("Representation=NULL", "the attribute Representation has no value to compare with"),
        ("IfcWall,,", "at line 1, column 9 of the selector a GlobalId or a class or "),
        ("IfcWall,\nName=a b", "at line 2, column 8 of the selector + or , must follow"),
        ("Name=", "at line 1, column 6 of the selector a name or a value or a number or a text in"),
        ("Name=", "quotes or / or FALSE or NULL or TRUE must follow, but it ends"),
        ("Name=/a(/", "/a(/ must be a regular expression; missing ), unterminated subpattern"),
        ("Name=/a(?=b)/", "must be a regular expression; DuckDB does not support it: "),
        ("Name=/a{2000}/", "must be a regular expression; DuckDB does not support it: "),
        ("query:x=1", "a query must lead to an attribute, a property as Set.Property, class, "),
        ('query:"profiles.x.y"=1', "got 'profiles.x.y'"),
        ('query:"storey.."=1', "at line 1, column 8 of the selector "),
    ],
)  # fmt: skip
def test_what_is_refused(odd, selector, said):
    con, _ = odd
    found = sentence(con, selector)
    assert found.startswith("objects_where: ")
    assert said in found
    assert "elements_where: " in sentence(
        con, selector, "elements_where($selector, elements := 'objects', objects := 'objects') --"
    )


UNKNOWN = {
    "Othr.Whole{}": "neither the model nor the standard has a property set named 'Othr'",
    "IfcWall, Other.Whol{}": "has a property of Other named 'Whol'; near names are Whole",
    "/Oth/./Q.*/{}": "has a property of /Oth/ named '/Q.*/'; the model has Digits, Empty",
    "Dimensions.Length{}": "the standard has a property set named 'Dimensions'; the model has ",
    '"Other.Whole"{}': 'has a property set named \'"Other\'; write "Other"."Whole"',
    'IfcWall, query:"Pset_WallCommon.IsExtrnal"{}': "near names are IsExternal",
}
COMPARISONS = ("=2", "!=2", ">5000", "<=5000", "*=x", "!*=x", "=NULL", "!=NULL", "=TRUE", "=/x/")


@pytest.mark.parametrize("selector", UNKNOWN)
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_a_property_that_nothing_has_selects_what_it_does_in_ifcopenshell(
    odd, selector, comparison
):
    con, model = odd
    selector = selector.format(comparison)
    with pytest.warns(FileWarning, match=re.escape(UNKNOWN[selector.replace(comparison, "{}")])):
        found = selected(con, selector)
    assert found == expected(model, selector)
    assert bool(found) == (comparison in ("!=2", "!*=x", "=NULL"))


def test_names_of_the_standard_are_no_error_in_any_model(odd):
    """A rule that every object breaks gives every object, as in IfcOpenShell."""
    con, model = odd
    for selector, count in (
        ("IfcWall, Pset_WallCommon.FireRating=NULL", len(model.by_type("IfcWall"))),
        ("IfcWall, /Pset_.*Common/.FireRating=NULL", len(model.by_type("IfcWall"))),
        ("IfcWall, Qto_WallBaseQuantities.NetVolume>0", 0),
        ('IfcWall, query:"Pset_WallCommon.FireRating"!=NULL', 0),
    ):
        assert selected(con, selector) == expected(model, selector)
        assert len(selected(con, selector)) == count


def test_near_names_of_the_model_come_first(odd):
    con, _ = odd
    own = "Pset_WallComon"
    con.execute("CREATE SCHEMA near")
    for name in ("objects", "relations", "properties", "materials", "classifications"):
        con.execute(f"CREATE TABLE near.{name} AS FROM {name}")
    con.execute(f"UPDATE near.properties SET pset = '{own}' WHERE pset = 'Other'")
    sql = "FROM objects_where('Pset_WallComn.Whole=2', objects := 'near.objects')"
    with pytest.warns(FileWarning, match=f"near names are {own}, Pset_WallCommon"):
        assert con.execute(sql).fetchall() == []


def mutated(rng):
    """A selector with one to four changes; a part of another one is one of them."""
    text = rng.choice(SELECTORS)
    signs = "ABIfc.,=!<>*+/\"'\\()[]{}|?^$ \n\t0129_-;:äß%#@&~`\0\u2028"
    for _ in range(rng.randint(1, 4)):
        low, high = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        new = (
            rng.choice(signs), "", text[low:high] * 2, rng.choice(SELECTORS), rng.choice(ODD),
            rng.choice(("NULL", "TRUE", "!", "Ifc", "query:", "/*", "*/", "0" * 22)),
        )  # fmt: skip
        text = text[:low] + rng.choice(new) + text[rng.choice((low, high)) :]
    return text


REFUSED = re.compile(
    r"objects_where: (at line \d+, column \d+ of the selector .* must follow, but it (ends|goes on)"
    r"|at line \d+, column \d+ of the selector .* is no class, attribute or filter; "
    r"|[<>]=? compares with a number|\w+ is an inverse attribute"
    r"|a class of the selector must be|no class of objects has an attribute"
    r"|the attribute \w+ has no value|/.*/ must be a regular expression"
    r"|a query must lead to|selector must be a text)",
    re.DOTALL,
)


@pytest.mark.slow
def test_a_thousand_mutated_selectors(odd):
    con, _ = odd
    rng = random.Random(1)
    plans, errors = [], []
    for _ in range(1000):
        text = mutated(rng)
        try:
            plans.append((text, query.selector_sql("objects_where", text, "objects")))
        except ValueError as error:  # and no other
            errors.append(str(error))
    assert [error for error in errors if not REFUSED.match(error)] == []
    assert len(errors) > 500
    assert len(plans) > 50
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _, sql in plans:
            con.execute(sql).fetchall()
    said = "neither the model nor the standard has a"
    assert [each for each in told if said not in str(each.message)] == []
    assert con.sql("SELECT count(*) > 0 FROM objects").fetchall() == [(True,)]


@pytest.mark.slow
def test_long_selectors(odd):
    con, _ = odd
    assert len(selected(con, ", ".join(["IfcWall"] * 500))) == 8
    many = [f"0{k:021}" for k in range(300)]
    assert selected(con, " + ".join(many)) == []
    assert len(selected(con, ", ".join(f"IfcWall, Name!=x{k}" for k in range(50)))) == 8


def test_circles_end():
    """Damaged files have objects that are parts of themselves."""
    with spatialq.connect() as con:
        for name in ("objects", "relations", "properties", "materials", "classifications"):
            con.register(name, SCHEMAS[name].empty_table())
            con.execute(f"CREATE TABLE t_{name} AS FROM {name}")
        con.execute(
            "INSERT INTO t_objects BY NAME SELECT * FROM (VALUES "
            "('a', 'IfcWall', 'one', '{\"Name\": \"one\"}', 'b', 1, 'f'), "
            "('b', 'IfcWall', 'two', '{\"Name\": \"two\"}', 'a', 2, 'f'), "
            "(NULL, 'IfcWall', NULL, NULL, 'a', 3, 'f'), ('c', NULL, 'x', '{}', 'c', 4, 'f')) "
            "AS v(global_id, ifc_class, name, attributes, parent_id, step_id, file_name)"
        )
        con.execute(
            "INSERT INTO t_relations BY NAME SELECT * FROM (VALUES "
            "('a', 'b', 'one', 'two', 'aggregates', 'f'), "
            "('b', 'a', 'two', 'one', 'aggregates', 'f')) "
            "AS v(child, parent, child_name, parent_name, kind, file_name)"
        )
        for selector, count in (
            ("IfcWall", 3),
            ("IfcWall, location=one", 2),
            ("IfcWall, parent=one", 2),
            ('IfcWall, query:"storey.Name"=NULL', 3),
            ('IfcWall, query:"parent.Name"=one', 2),
            ("Name=NULL", 1),
        ):
            sql = "SELECT count(*) FROM objects_where($s, objects := 't_objects')"
            assert con.execute(sql, {"s": selector}).fetchall() == [(count,)], selector
