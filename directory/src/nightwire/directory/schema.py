"""The tables behind the directory, and the views that people ask; units stand beside columns."""

SCHEMA = """
CREATE TABLE clock (now REAL, late REAL, gone REAL);
CREATE TABLE entries (
    key TEXT PRIMARY KEY, site TEXT, kind TEXT, name TEXT, owner TEXT, survey TEXT, topic TEXT,
    endpoints TEXT, capabilities TEXT, interval REAL, ended INTEGER, heartbeat REAL, heard INTEGER,
    rivals INTEGER
) WITHOUT ROWID;
CREATE INDEX entries_by_name ON entries (name);
CREATE TABLE known_filters (
    owner TEXT, name TEXT, version INTEGER, survey TEXT, topic TEXT, cap INTEGER, live INTEGER,
    PRIMARY KEY (owner, name)
) WITHOUT ROWID;
CREATE TABLE known_topics (name TEXT PRIMARY KEY, partitions INTEGER) WITHOUT ROWID;

CREATE VIEW peers AS SELECT
    site, kind, name, owner, survey, topic, endpoints, capabilities,
    CASE WHEN ended THEN 'gone' WHEN interval = 0 THEN 'listed'
         WHEN clock.now - heartbeat > clock.gone THEN 'gone'
         WHEN clock.now - heartbeat > clock.late THEN 'late' ELSE 'live' END AS state,
    CASE WHEN interval > 0 THEN clock.now - heartbeat END AS silence,   -- s
    heard,                                                              -- ms since 1970, UTC
    rivals
FROM entries, clock;
CREATE VIEW processes AS SELECT site, name, owner, endpoints, capabilities, state, silence, heard, rivals
FROM peers WHERE kind = 'process';
CREATE VIEW filters AS SELECT owner, name, version, survey, topic, cap, live AS alive FROM known_filters;
CREATE VIEW streams AS SELECT
    name AS topic, partitions,
    CASE WHEN name LIKE 'alerts.%' THEN substr(name, 8) END AS survey,
    CASE WHEN instr(name, '.') THEN substr(name, 1, instr(name, '.') - 1) ELSE name END AS kind
FROM known_topics;
CREATE VIEW sites AS SELECT
    site, count(*) AS entries, sum(state = 'live') AS live, max(heard) AS heard
FROM peers GROUP BY site;
"""
