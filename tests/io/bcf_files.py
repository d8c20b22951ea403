"""Small BCF archives, whole and damaged."""

import zipfile

VERSION = '<Version VersionId="{}"/>'
TOPIC = "7b5e1c4e-0000-4000-8000-000000000001"
VIEW = "7b5e1c4e-0000-4000-8000-000000000002"
MARKUP = f"""<?xml version="1.0" encoding="UTF-8"?>
<Markup>
  <Header><File><Filename>house.ifc</Filename></File></Header>
  <Topic Guid="{TOPIC}" TopicType="Clash" TopicStatus="Open">
    <ReferenceLink>http://example.com</ReferenceLink>
    <Title>Rohr in Träger</Title><Priority>High</Priority><Index>3</Index>
    <Labels>heating</Labels><Labels>storey 1</Labels>
    <CreationDate>2026-01-02T03:04:05+02:00</CreationDate><CreationAuthor>a@b.c</CreationAuthor>
    <DueDate>2026-02-30T00:00:00Z</DueDate><AssignedTo>d@e.f</AssignedTo>
    <DocumentReference><ReferencedDocument>plan.pdf</ReferencedDocument></DocumentReference>
    <RelatedTopic Guid="{VIEW}"/>
  </Topic>
  <Comment Guid="{TOPIC}"><Date>2026-01-02T03:04:05Z</Date><Author>a@b.c</Author>
    <Comment>Move it</Comment><Viewpoint Guid="{VIEW}"/></Comment>
  <Viewpoints Guid="{VIEW}"><Viewpoint>viewpoint.bcfv</Viewpoint>
    <Snapshot>snapshot.png</Snapshot></Viewpoints>
</Markup>"""
PIPE, BEAM, SLAB = "0" * 22, "1" * 22, "2" * 22
VISINFO = f"""<VisualizationInfo Guid="{VIEW}">
  <Components>
    <ViewSetupHints SpacesVisible="false" OpeningsVisible="true"/>
    <Selection><Component IfcGuid="{PIPE}"/><Component IfcGuid="{BEAM}"/></Selection>
    <Visibility DefaultVisibility="true">
      <Exceptions><Component IfcGuid="{SLAB}"/></Exceptions>
    </Visibility>
    <Coloring><Color Color="FF0000"><Component IfcGuid="{PIPE}"/></Color></Coloring>
  </Components>
  <PerspectiveCamera>
    <CameraViewPoint><X>1</X><Y>2</Y><Z>3</Z></CameraViewPoint>
    <CameraDirection><X>0</X><Y>1</Y><Z>0</Z></CameraDirection>
    <CameraUpVector><X>0</X><Y>0</Y><Z>1</Z></CameraUpVector>
    <FieldOfView>60</FieldOfView>
  </PerspectiveCamera>
</VisualizationInfo>"""


def parts(**changes):
    """The parts of an archive of one topic; None leaves one out."""
    found = {
        "version": ("bcf.version", VERSION.format("2.1")),
        "markup": (f"{TOPIC}/markup.bcf", MARKUP),
        "view": (f"{TOPIC}/viewpoint.bcfv", VISINFO),
    }
    return {
        found[name][0]: changes.get(name, found[name][1])
        for name in found
        if changes.get(name, "") is not None
    }


def write(path, members=None):
    """Write an archive of named texts."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (parts() if members is None else members).items():
            archive.writestr(name, text)
    return path
