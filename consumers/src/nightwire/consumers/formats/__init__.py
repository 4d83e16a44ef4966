"""Where `nightwire subscribe` puts alerts: rows, JSON, Avro, tables, stamps.  Nothing reads here.

`table_output` needs all of Arrow, and is imported where tables are asked for.
"""

from nightwire.consumers.formats.alert_output import AlertOutput, open_output
from nightwire.consumers.formats.container import MixedSchemasError
from nightwire.consumers.formats.json import json_line
from nightwire.consumers.formats.stamp_folder import StampFolder

__all__ = ["AlertOutput", "MixedSchemasError", "StampFolder", "json_line", "open_output"]
