"""What IFC says of classes, attributes, data types and standard property sets, for an IDS."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from spatialq.io.ifc import schemas

PATH = Path(schemas.__file__).with_name("schemas_values.json")

OF_TYPES = {
    "IfcFurnishingElement": "Furniture SystemFurnitureElement",
    "IfcDistributionControlElement": "Actuator Alarm Controller FlowInstrument Sensor",
    "IfcEnergyConversionDevice": (
        "AirToAirHeatRecovery Boiler Chiller Coil Condenser CooledBeam CoolingTower "
        "ElectricGenerator ElectricMotor EvaporativeCooler Evaporator HeatExchanger Humidifier "
        "MotorConnection SpaceHeater Transformer TubeBundle UnitaryEquipment"
    ),
    "IfcFlowController": (
        "AirTerminalBox Damper ElectricTimeControl FlowMeter ProtectiveDevice SwitchingDevice Valve"
    ),
    "IfcFlowFitting": "CableCarrierFitting DuctFitting JunctionBox PipeFitting",
    "IfcFlowMovingDevice": "Compressor Fan Pump",
    "IfcFlowSegment": "CableCarrierSegment CableSegment DuctSegment PipeSegment",
    "IfcFlowStorageDevice": "ElectricFlowStorageDevice Tank",
    "IfcFlowTerminal": (
        "AirTerminal ElectricAppliance FireSuppressionTerminal Lamp LightFixture Outlet "
        "SanitaryTerminal StackTerminal WasteTerminal"
    ),
    "IfcFlowTreatmentDevice": "DuctSilencer Filter",
    "IfcEquipmentElement": "VibrationIsolator",
}
BY_TYPE = {
    f"Ifc{name}": (occurrence, f"Ifc{name}Type")
    for occurrence, names in OF_TYPES.items()
    for name in names.split()
}
"""Names of IFC4 that an IDS may use for IFC2X3, where the type says what an occurrence is: the
mapping table of IDS 1.0."""


@dataclass(frozen=True)
class Schema:
    """One schema.

    Parameters
    ----------
    name : str
    types : dict from str to str
        Data types in capitals, with their types of XML.
    own_attributes : dict from str to dict from str to str
        What each class declares itself, with the type of XML; '' for entities, lists and selects.
    own_predefined : dict from str to list of str
        The values of PredefinedType, by the class that declares it.
    sets : dict from str to dict from str to str
        Standard sets: property -> data type, '' where there is none.
    """

    name: str
    types: dict[str, str]
    own_attributes: dict[str, dict[str, str]]
    own_predefined: dict[str, list[str]]
    sets: dict[str, dict[str, str]]

    @cached_property
    def classes(self) -> dict[str, str]:
        """The classes that an IDS may name, by their names in capitals."""
        names = list(schemas.schemas()[self.name])
        if self.name == "IFC2X3":
            names += BY_TYPE
        return {name.upper(): name for name in names}

    def lineage(self, ifc_class: str) -> list[str]:
        """Give a class and its supertypes; of what only IFC2X3's types name, those it occurs as."""
        if self.name == "IFC2X3" and ifc_class in BY_TYPE:
            ifc_class = BY_TYPE[ifc_class][0]
        return list(schemas.schemas()[self.name].lineage(ifc_class))

    def attributes(self, ifc_class: str) -> dict[str, str]:
        """Give the attributes of a class with their types of XML."""
        return {
            name: base
            for above in reversed(self.lineage(ifc_class))
            for name, base in self.own_attributes.get(above, {}).items()
        }

    def predefined(self, ifc_class: str) -> list[str]:
        """Give the values of the predefined type of a class; none if it has no such attribute."""
        if self.name == "IFC2X3" and ifc_class in BY_TYPE:
            ifc_class = BY_TYPE[ifc_class][1]
        for above in self.lineage(ifc_class):
            if above in self.own_predefined:
                return self.own_predefined[above]
        return []

    @cached_property
    def attribute_names(self) -> list[str]:
        """The names of all attributes."""
        return sorted({name for own in self.own_attributes.values() for name in own})

    def are(self, ifc_classes: Iterable[str], top: str) -> set[str]:
        """Choose the classes that are subtypes of one."""
        return {each for each in ifc_classes if top in self.lineage(each)}


@cache
def known() -> dict[str, Schema]:
    """Read the schemas by name."""
    tables = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        name: Schema(name, each["types"], each["attributes"], each["predefined"], each["sets"])
        for name, each in tables.items()
    }
