"""Whether the objects of a model are what specifications say: arrays, all objects at once.

A facet is compared with each distinct name and value of the model once. What objects have is joined
with the outcome by their numbers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spatialq.io.ids.facts import Facts
from spatialq.io.ids.reader import VOIDS, Facet, Specification, bare
from spatialq.io.ids.values import Value, quoted
from spatialq.io.ids.worker import (
    ALONE,
    EMPTY,
    LOWER,
    OBJECT,
    RELATIONS,
    SET_POINT,
    UPPER,
)

MOST_SAID = 3
"""Values of an object that a reason names."""


@dataclass(frozen=True)
class Outcome:
    """What came of one facet.

    Parameters
    ----------
    has : numpy.ndarray of bool
        For each object, whether it is as the facet says.
    lacks : numpy.ndarray of bool
        For each object, whether there is nothing that could be compared: of an optional facet that
        is right.
    found : callable
        Says of an object what it has instead.
    there : numpy.ndarray of bool, optional
        For each object, whether it has what the facet prohibits, where that is more than `has`.
    """

    has: np.ndarray
    lacks: np.ndarray
    found: Callable[[int], str]
    there: np.ndarray | None = None


@dataclass(frozen=True)
class Checked:
    """What came of one requirement, or of a specification without any.

    Parameters
    ----------
    requirement : Facet, optional
    objects : numpy.ndarray
        Rows of the objects that the specification applies to.
    passed : numpy.ndarray of bool
        For each of them.
    reason : callable
        Says of a row why it failed.
    """

    requirement: Facet | None
    objects: np.ndarray
    passed: np.ndarray
    reason: Callable[[int], str]


class Model:
    """The facts of one model, and what was found out about them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._by_kind = {
            "entity": self.entity,
            "attribute": self.attribute,
            "property": self.property,
            "classification": self.classification,
            "material": self.material,
            "partOf": self.part_of,
        }
        kinds = np.array([kind for kind, _ in facts.values], np.int64)
        self._full = kinds != EMPTY
        self._is_real = self._full & (kinds != OBJECT)

    def check(self, specification: Specification) -> Iterator[Checked]:
        """Check a specification: give what came of each of its requirements."""
        applies = np.ones(self.facts.size, bool)
        for facet in specification.applicability:
            applies &= self._by_kind[facet.kind](facet).has
        objects = np.flatnonzero(applies)
        if specification.cardinality == "prohibited":
            passed = np.zeros(objects.size, bool)
            yield Checked(None, objects, passed, lambda _: "no such object may be in the model")
            return
        if not specification.requirements:
            yield Checked(None, objects, np.ones(objects.size, bool), lambda _: "")
        for facet in specification.requirements:
            yield self._require(facet, objects)

    def _require(self, facet: Facet, objects: np.ndarray) -> Checked:
        outcome = self._by_kind[facet.kind](facet)
        passed = outcome.has[objects]
        if facet.cardinality == "optional":
            passed = passed | outcome.lacks[objects]
        elif facet.cardinality == "prohibited":
            passed = ~(outcome.has if outcome.there is None else outcome.there)[objects]
            return Checked(facet, objects, passed, lambda _: f"it has what it must not: {facet}")
        return Checked(facet, objects, passed, outcome.found)

    def texts(self, value: Value) -> np.ndarray:
        """Tell which texts of the model a value allows."""
        return value.of_texts(self.facts.texts)

    def values(self, value: Value, numbers: np.ndarray) -> np.ndarray:
        """Tell of numbers of values which are allowed; entities, lists and empty ones never are."""
        used = np.unique(numbers)
        used = used[self._is_real[used]]
        allowed = np.zeros(len(self.facts.values), bool)
        allowed[used] = value.of_values([self.facts.values[each][1] for each in used])
        return np.asarray(allowed[numbers], dtype=bool)

    def _mask(self, rows: np.ndarray) -> np.ndarray:
        """Tell which objects are among some rows."""
        found = np.zeros(self.facts.size, bool)
        found[rows] = True
        return found

    def entity(self, facet: Facet) -> Outcome:
        """Compare classes and predefined types."""
        objects = self.facts.objects
        uppers = [text.upper() for text in self.facts.texts]
        named = facet.values["name"].of_texts(uppers)
        has = named[objects["class"]]
        is_as = objects["as_class"] >= 0
        has[is_as] |= named[objects["as_class"][is_as]]
        kind = facet.values.get("predefinedType")
        if kind is not None:
            said = [each for kinds in self.facts.kinds for each in kinds]
            allowed = dict(zip(said, kind.of_texts(said).tolist(), strict=True))
            of_kinds = np.array(
                [any(allowed[each] for each in kinds) for kinds in self.facts.kinds], bool
            )
            has &= of_kinds[objects["kinds"]]

        def found(row: int) -> str:
            ifc_class = self.facts.texts[objects["class"][row]]
            kinds = self.facts.kinds[objects["kinds"][row]]
            what = f" of the predefined type '{kinds[-1]}'" if kinds else " of no predefined type"
            return f"it is {ifc_class}{what if kind is not None else ''}, not {entity_name(facet)}"

        return Outcome(has, np.zeros(self.facts.size, bool), found)

    def attribute(self, facet: Facet) -> Outcome:
        """Compare attributes: one of several that are meant is enough."""
        owner, name, number = self.facts.table("attributes", "owner", "name", "value")
        named = self.texts(facet.values["name"])[name]
        owner, number = owner[named], number[named]
        full = self._full[number]
        there = self._mask(owner)
        value = facet.values.get("value")
        has = self._mask(owner[full if value is None else self.values(value, number)])

        of_owner = Rows(owner)

        def found(row: int) -> str:
            said = self._said(number[of_owner(row)])
            what = f"the attribute {bare(facet.values['name'])}"
            if not said:
                return f"{what} is not set"
            return f"{what} is {said}" + ("" if value is None else f", not {value}")

        # what is prohibited altogether must not even be there with an empty text
        return Outcome(has, ~there, found, there if value is None else None)

    def property(self, facet: Facet) -> Outcome:
        """Compare properties: each set that is meant must have one, and all must be right."""
        facts = self.facts
        owner, number, inherited = facts.table("set_owners", "owner", "set", "inherited")
        set_of, name, prop = facts.table("properties", "set", "name", "property")
        set_allowed = self.texts(facet.values["propertySet"])[facts.sets]
        name_allowed = self.texts(facet.values["baseName"])
        wanted = set_allowed[number]
        owner, number, inherited = owner[wanted], number[wanted], inherited[wanted]
        # the properties of each set in a run
        named = name_allowed[name]
        set_of, name, prop = set_of[named], name[named], prop[named]
        order = np.argsort(set_of, kind="stable")
        set_of, name, prop = set_of[order], name[order], prop[order]
        first = np.searchsorted(set_of, number)
        count = np.searchsorted(set_of, number, side="right") - first
        pair = np.repeat(np.arange(number.size), count)
        at = np.arange(pair.size) - np.repeat(np.cumsum(count) - count, count) + first[pair]
        # a property of an object hides that of its type with the same set and name
        texts = len(facts.texts)
        of_set = owner * texts + facts.sets[number]  # each set name of each object
        of_name = of_set[pair] * texts + name[at]
        is_own = inherited[pair] == 0
        seen = is_own | ~np.isin(of_name, of_name[is_own])
        pair, at = pair[seen], at[seen]

        of_row = self._property_states(facet)[prop[at]]
        rows_owner = owner[pair]
        is_wrong = self._mask(rows_owner[of_row == WRONG])
        # each set that is meant must have the property, with a value
        lacking = np.setdiff1d(of_set, of_set[pair[of_row == RIGHT]])
        lacks_owner, lacks_name = lacking // texts, lacking % texts
        has = self._mask(owner) & ~is_wrong & ~self._mask(lacks_owner)
        of_prop, kind, of_value = facts.table("property_values", "property", "type", "value")
        sets_of, rows_of, values_of = Rows(owner), Rows(rows_owner), Rows(of_prop)
        lacks_of = Rows(lacks_owner)
        members = prop[at]

        def found(row: int) -> str:
            what = f"{bare(facet.values['propertySet'])}.{bare(facet.values['baseName'])}"
            if not sets_of(row).size:
                return f"it has no property set {bare(facet.values['propertySet'])}"
            mine = rows_of(row)
            if not mine.size:
                return f"it has no property {what}"
            wrong = mine[of_row[mine] == WRONG]
            if not wrong.size:
                if not (of_row[mine] == RIGHT).any():
                    return f"the property {what} has no value that can be compared"
                names = [facts.texts[each] for each in lacks_name[lacks_of(row)][:MOST_SAID]]
                base = bare(facet.values["baseName"])
                return f"its property set {' and '.join(names)} has no value of a property {base}"
            there = np.concatenate([values_of(each) for each in np.unique(members[wrong])])
            kinds = sorted({facts.texts[each] for each in kind[there]})
            said = f"the property {what} is {self._said(of_value[there])} of {', '.join(kinds)}"
            wish = f" of {facet.data_type}" if facet.data_type else ""
            return f"{said}, not {facet.values.get('value', 'a value')}{wish}"

        return Outcome(has, ~is_wrong, found, self._mask(rows_owner))

    def _property_states(self, facet: Facet) -> np.ndarray:
        """Tell of each property whether it has no value, a wrong one, or a right one.

        One of several values is enough, but all must be in a range. Of a bounded property both ends
        must be in a range. What is no range must be one of its values or, if it has no set point,
        between its ends.
        """
        facts = self.facts
        prop, role, kind, number = facts.table(
            "property_values", "property", "role", "type", "value"
        )
        (numbers,) = facts.table("properties", "property")
        size = int(numbers.max(initial=-1)) + 1
        state = np.full(size, NO_VALUE, np.int8)
        full = self._full[number]
        prop, role, kind, number = prop[full], role[full], kind[full], number[full]
        state[prop] = WRONG
        if facet.data_type is not None:
            typed = np.array([text == facet.data_type for text in facts.texts], bool)[kind]
            prop, role, number = prop[typed], role[typed], number[typed]
        value = facet.values.get("value")
        if value is None:
            state[prop] = RIGHT
            return state
        allowed = self.values(value, number)
        state[prop[allowed]] = RIGHT
        if value.is_range:
            state[prop[(role == ALONE) & ~allowed]] = WRONG
        ends: dict[int, dict[int, Any]] = {}
        for row in np.flatnonzero(role != ALONE):
            ends.setdefault(int(prop[row]), {})[int(role[row])] = facts.values[number[row]][1]
        for each, bounds in ends.items():
            lower, upper = bounds.get(LOWER), bounds.get(UPPER)
            if value.is_range:
                state[each] = RIGHT if value.within(lower, upper) else WRONG
            elif SET_POINT not in bounds and value.is_between(lower, upper):
                state[each] = RIGHT
        return state

    def classification(self, facet: Facet) -> Outcome:
        """Compare references to classification systems, with all above them."""
        owner, reference = self.facts.table("reference_owners", "owner", "reference")
        number, system, code = self.facts.table("references", "reference", "system", "code")
        right = _chosen(self.texts(facet.values["system"]), system)
        value = facet.values.get("value")
        if value is not None:
            right = right & _chosen(self.texts(value), code)
        has = self._mask(owner[np.isin(reference, number[right])])

        of_owner, of_reference = Rows(owner), Rows(number)

        def found(row: int) -> str:
            mine = [each for one in reference[of_owner(row)] for each in of_reference(one)]
            if not mine:
                return "it has no classification"
            said = {
                " ".join(self.facts.texts[each] for each in (system[one], code[one]) if each >= 0)
                for one in mine
            }
            there = ", ".join(map(quoted, sorted(said)[:MOST_SAID]))
            wanted = str(value) if value is not None else "a code"
            return f"its classification is {there}, not {wanted} of {bare(facet.values['system'])}"

        return Outcome(has, ~self._mask(owner), found)

    def material(self, facet: Facet) -> Outcome:
        """Compare the names and categories of materials and of what they are made of."""
        owner, material = self.facts.table("material_owners", "owner", "material")
        of_material, name = self.facts.table("material_names", "material", "name")
        value = facet.values.get("value")
        there = self._mask(owner)
        if value is None:
            has = there
        else:
            right = of_material[self.texts(value)[name]]
            has = self._mask(owner[np.isin(material, right)])

        of_owner, names_of = Rows(owner), Rows(of_material)

        def found(row: int) -> str:
            if not there[row]:
                return "it has no material"
            mine = [each for one in material[of_owner(row)] for each in names_of(one)]
            said = sorted({self.facts.texts[each] for each in name[mine]})
            names = ", ".join(map(quoted, said[:MOST_SAID]))
            return f"its material is {names or 'without a name'}, not {value}"

        return Outcome(has, ~there, found)

    def part_of(self, facet: Facet) -> Outcome:
        """Compare wholes, direct and further up."""
        part, whole, relation = self.facts.table("parts", "part", "whole", "relation")
        if facet.relation is not None:
            names = facet.relation.split() if facet.relation == VOIDS else [facet.relation]
            used = np.isin(relation, [list(RELATIONS).index(name) for name in names])
            part, whole = part[used], whole[used]
        assert facet.whole is not None
        wanted = self.entity(facet.whole).has
        reached = np.zeros(self.facts.size, bool)
        above = wanted
        while True:  # from the wholes down, until nothing new is found: circles end as well
            new = self._mask(part[above[whole]]) & ~reached
            if not new.any():
                break
            reached |= new
            above = new
        has_whole = self._mask(part)
        of_part = Rows(part)

        def found(row: int) -> str:
            by = f" by {facet.relation}" if facet.relation else ""
            if not has_whole[row]:
                return f"it is part of nothing{by}"
            direct = whole[of_part(row)]
            names = sorted({self.facts.texts[self.facts.objects["class"][each]] for each in direct})
            there = ", ".join(names[:MOST_SAID])
            return f"it is part of {there}{by}, not of {entity_name(facet.whole)}"

        return Outcome(reached, ~has_whole, found)

    def _said(self, numbers: np.ndarray) -> str:
        """Say some values."""
        said = dict.fromkeys(_shown(*self.facts.values[each]) for each in numbers)
        return ", ".join(list(said)[:MOST_SAID])


NO_VALUE, WRONG, RIGHT = range(3)


class Rows:
    """The rows of a table by what a column of numbers says, found when they are first asked for."""

    def __init__(self, column: np.ndarray) -> None:
        self.column = column

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.column, kind="stable")

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.concatenate(([0], np.cumsum(np.bincount(self.column))))

    def __call__(self, number: int) -> np.ndarray:
        """Give the rows of a number."""
        if number + 1 >= self._ends.size:
            return self._order[:0]
        return self._order[self._ends[number] : self._ends[number + 1]]


def _chosen(allowed: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Tell which numbers of texts are allowed; -1, for none, is not."""
    found = numbers >= 0
    found[found] = allowed[numbers[found]]
    return found


def _shown(kind: int, value: object) -> str:
    if kind == OBJECT:
        return "an object or list"
    if isinstance(value, bool):
        return str(value).lower()
    return "empty" if kind == EMPTY else quoted(str(value))


def entity_name(facet: Facet | None) -> str:
    """Say a class as a name, without what kind of facet it is."""
    return str(facet).removeprefix("entity ")
