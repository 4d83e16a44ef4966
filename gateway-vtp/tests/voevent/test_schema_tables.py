from pathlib import Path

import pytest

from nightwire.gateway.voevent.schema_tables import (
    child,
    choice,
    compile_schema,
    in_any_order,
    sequence,
    states,
    times,
)

SCHEMA = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:a" targetNamespace="urn:a">
<xs:element name="e"><xs:complexType>{}</xs:complexType></xs:element></xs:schema>"""


def test_a_sequence_leads_from_state_to_state() -> None:
    model = sequence([child("a"), times(child("b"), 0, 1), times(child("c"), 1, None)])
    assert states(model, ["a", "b", "c"]) == (
        [[1, None, None], [None, 2, 3], [None, None, 3], [None, None, 3]],
        [False, False, False, True],
    )


def test_a_free_choice_has_one_state() -> None:
    assert states(times(choice([child("a"), child("b")]), 0, None), ["a", "b"]) == ([[0, 0]], [True])


def test_children_in_any_order_come_once_each() -> None:
    table, ends = states(in_any_order(needed=["a"], optional=["b"]), ["a", "b"])
    assert table == [[1, 2], [None, 3], [3, None], [None, None]]
    assert ends == [False, True, False, True]


@pytest.mark.parametrize(
    ("inside", "culprit"),
    [
        ('<xs:sequence><xs:element name="a" type="xs:string" maxOccurs="3"/></xs:sequence>', "1 to 3 times"),
        ("<xs:key name='k'/>", "xs:key"),
        ('<xs:sequence><xs:any/><xs:element name="a"/></xs:sequence>', "xs:any"),
        (
            '<xs:attribute name="a"><xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="x"/>'
            "</xs:restriction></xs:simpleType></xs:attribute>",
            "xs:restriction",
        ),
    ],
)
def test_what_is_not_compiled_is_refused(tmp_path: Path, inside: str, culprit: str) -> None:
    file = tmp_path / "a.xsd"
    file.write_text(SCHEMA.format(inside))
    with pytest.raises(ValueError, match=f"{culprit}.* is not compiled"):
        compile_schema(file)
