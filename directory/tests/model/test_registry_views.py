"""RegTAP's tables over the directory."""

import re

import pytest

from directory.tests.sample import HOSTILE
from nightwire.directory.model import QueryError, View, ivoid

IDENTIFIER = re.compile(r"ivo://[\w\d][\w\d\-_\.!~\*'\(\)\+=]{2,}(/[\w\d\-_\.!~\*'\(\)\+=]+)*")
"""`vr:IdentifierURI` of VOResource 1.1."""


def test_the_standards_own_question_finds_the_voevents(sample_view: View) -> None:
    sql = """SELECT ivoid, res_title, access_url FROM rr_resource
        NATURAL JOIN rr_capability NATURAL JOIN rr_interface
        WHERE standard_id = 'ivo://ivoa.net/std/voevent' AND intf_role = 'std' ORDER BY intf_index"""
    identifier = "ivo://local/nightwire/stream/voevents"
    assert sample_view.query(sql).rows == [
        (identifier, "voevents", "kafka://127.0.0.1:9092,[::1]:9093/voevents"),
        (identifier, "voevents", "vtp://<x>&:1"),
        (identifier, "voevents", "vtp://127.0.0.1:8099"),
        (identifier, "voevents", "tls://here.example:8499"),
    ]


def test_whose_it_is_and_where_it_is_reached(sample_view: View) -> None:
    sql = """SELECT res_type, updated, role_name, access_url FROM rr_resource
        NATURAL JOIN rr_res_role NATURAL JOIN rr_interface WHERE base_role = 'creator' AND short_name = ?"""
    found = ("vr:organisation", "2023-11-14T22:13:20", "ann", "https://antares.example:443")
    assert sample_view.query(sql, "antares").rows == [found]


@pytest.mark.parametrize("site", ["local", "ab", "<site>", "-", "Ω", "a.b-c_d"])
@pytest.mark.parametrize("name", ["alerts.sim", HOSTILE, "ann/snr", "Ω\ud800", "100%"])
def test_any_name_makes_an_identifier(site: str, name: str) -> None:
    assert IDENTIFIER.fullmatch(ivoid(site, "process", name))


def test_different_names_make_different_identifiers() -> None:
    names = ["a b", "a=20b", "a%20b", "a+b", "a_b"]
    assert len({ivoid("local", "process", name) for name in names}) == len(names)


def test_what_is_gone_and_what_the_site_says_to_itself_is_left_out(sample_view: View) -> None:
    titles = {title for (title,) in sample_view.query("SELECT res_title FROM rr_resource").rows}
    assert titles.isdisjoint({"requests.ann", "dead-letters"})
    assert {"alerts.lsst", "ingest-lsst", HOSTILE} <= titles


def test_an_identifier_of_what_is_no_text_is_refused(sample_view: View) -> None:
    with pytest.raises(QueryError):
        sample_view.query("SELECT ivoid(1, NULL, x'00')")
