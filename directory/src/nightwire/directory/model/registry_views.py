"""Tables of the Virtual Observatory's registry (RegTAP 1.2), as far as the directory fills them.

SQLite has no schema ``rr``: ``rr.resource`` is called ``rr_resource``, and so on.  Columns have
RegTAP's names; those that nothing here could fill are left out.  What is gone is left out too, as
RegTAP asks.
"""

import re

VALID_AUTHORITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.=-]{2,}")
EVENTS = "ivo://ivoa.net/std/voevent"
"""The standard of a stream of VOEvents; keys of it name the ways to follow one."""


def ivoid(site: str, kind: str, name: str) -> str:
    """Return the IVOA identifier of something at *site*: ``ivo://SITE/nightwire/KIND/NAME``.

    A character that an identifier cannot have is written as ``=`` and the digits of its bytes.
    """
    authority = _quoted(site)
    if not VALID_AUTHORITY.fullmatch(authority):
        authority = f"site.{authority}"
    return f"ivo://{authority}/nightwire/{_quoted(kind)}/{_quoted(name)}".lower()


def _quoted(text: str) -> str:
    return re.sub(
        r"[^A-Za-z0-9_.-]",
        lambda found: "".join(f"={byte:02x}" for byte in found[0].encode(errors="replace")),
        text,
    )


STREAMS = (
    "FROM streams WHERE state <> 'gone' AND kind IN ('alerts', 'voevents', 'filter', 'broker', 'returns')"
)
PEERS = "FROM peers WHERE state <> 'gone'"
UPDATED = "strftime('%Y-%m-%dT%H:%M:%S', {} / 1000, 'unixepoch')"
URL = """CASE WHEN instr({1}, '://') THEN {1} WHEN {0} LIKE 'vtp%' THEN 'vtp://' || {1}
    WHEN {0} LIKE 'metrics%' THEN 'http://' || {1} ELSE {0} || '://' || {1} END"""

REGISTRY_VIEWS = f"""
CREATE VIEW rr_resource AS
SELECT ivoid(site, 'stream', topic) AS ivoid, 'vs:catalogservice' AS res_type, NULL AS created,
    substr(topic, 1, 16) AS short_name, topic AS res_title, {UPDATED.format("newest")} AS updated,
    'Stream of ' || kind || ' in Kafka at ' || site AS res_description {STREAMS}
UNION ALL SELECT ivoid(site, kind, name),
    CASE kind WHEN 'broker' THEN 'vr:organisation' ELSE 'vr:service' END,
    NULL, substr(name, 1, 16), name, {UPDATED.format("heard")}, 'A ' || kind || ' at ' || site {PEERS};

CREATE VIEW rr_capability AS
SELECT ivoid(site, 'stream', topic) AS ivoid, 1 AS cap_index, 'vr:capability' AS cap_type,
    CASE kind WHEN 'voevents' THEN '{EVENTS}' END AS standard_id {STREAMS}
UNION ALL SELECT ivoid(site, kind, name), 1, 'vr:capability', NULL {PEERS} AND endpoints <> '{{}}';

CREATE VIEW rr_interface AS
SELECT ivoid(site, 'stream', topic) AS ivoid, 1 AS cap_index, 1 AS intf_index,
    CASE kind WHEN 'voevents' THEN 'voe:streamendpoint' END AS intf_type,
    CASE kind WHEN 'voevents' THEN 'std' END AS intf_role,
    'kafka://' || bootstrap || '/' || topic AS access_url {STREAMS}
UNION ALL SELECT ivoid(p.site, 'stream', t.topic), 1,
    1 + row_number() OVER (PARTITION BY p.site ORDER BY p.kind, p.name), 'voe:streamendpoint', 'std',
    {URL.format("'vtp'", "(p.endpoints ->> 'vtp_subscribers')")}
FROM peers AS p JOIN streams AS t ON t.site = p.site AND t.topic = 'voevents' AND t.state <> 'gone'
WHERE p.kind IN ('process', 'site') AND p.state <> 'gone' AND p.endpoints ->> 'vtp_subscribers' <> ''
UNION ALL SELECT ivoid(p.site, p.kind, p.name), 1,
    row_number() OVER (PARTITION BY p.site, p.kind, p.name ORDER BY e.key), NULL, NULL,
    {URL.format("e.key", "e.value")}
FROM peers AS p, json_each(p.endpoints) AS e WHERE p.state <> 'gone';

CREATE VIEW rr_res_role AS
SELECT ivoid(site, 'stream', topic) AS ivoid, site AS role_name, 'publisher' AS base_role {STREAMS}
UNION ALL SELECT ivoid(site, kind, name), site, 'publisher' {PEERS}
UNION ALL SELECT ivoid(site, kind, name), owner, 'creator' {PEERS} AND owner <> '';
"""  # noqa: S608  (constants)
REGISTRY_TABLES = ("rr_resource", "rr_capability", "rr_interface", "rr_res_role")
