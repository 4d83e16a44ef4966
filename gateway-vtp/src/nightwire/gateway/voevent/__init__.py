"""VOEvents: what is in a packet, whether it is valid, and packets made of alerts."""

from nightwire.gateway.voevent.samples import samples
from nightwire.gateway.voevent.validation import compile_schemas, schema_complaint
from nightwire.gateway.voevent.xml import parse_xml

__all__ = ["compile_schemas", "parse_xml", "samples", "schema_complaint"]
