"""The tables behind the directory, and the views that people ask; units stand beside columns."""

LIVE, LATE = 300, 129_600
"""Age of a topic's newest record up to which it is live, and late: surveys rest by day. [s]"""

SCHEMA = f"""
CREATE TABLE limits (late REAL, gone REAL);
CREATE TABLE known_sites (
    site TEXT PRIMARY KEY, bootstrap TEXT, registry TEXT, now REAL, newest INTEGER, age REAL
) WITHOUT ROWID;
CREATE TABLE entries (
    site TEXT, kind TEXT, name TEXT, owner TEXT, survey TEXT, topic TEXT, endpoints TEXT,
    capabilities TEXT, interval REAL, ended INTEGER, heartbeat REAL, heard INTEGER, rivals INTEGER,
    PRIMARY KEY (site, kind, name)
) WITHOUT ROWID;
CREATE INDEX entries_by_name ON entries (name);
CREATE INDEX entries_by_kind ON entries (kind, owner);
CREATE TABLE known_filters (
    site TEXT, owner TEXT, name TEXT, version INTEGER, survey TEXT, topic TEXT, cap INTEGER, live INTEGER,
    PRIMARY KEY (site, owner, name)
) WITHOUT ROWID;
CREATE TABLE known_topics (
    site TEXT, topic TEXT, partitions INTEGER, rate REAL, newest INTEGER, schema_id INTEGER,
    PRIMARY KEY (site, topic)
) WITHOUT ROWID;
CREATE TABLE members (
    site TEXT, name TEXT, topic TEXT, members INTEGER, lag INTEGER, PRIMARY KEY (site, topic, name)
) WITHOUT ROWID;
CREATE INDEX members_by_name ON members (site, name);

CREATE VIEW streams AS SELECT
    t.site, t.topic,
    CASE WHEN instr(t.topic, '.') THEN substr(t.topic, 1, instr(t.topic, '.') - 1) ELSE t.topic END AS kind,
    CASE WHEN t.topic LIKE 'alerts.%' THEN substr(t.topic, 8) ELSE '' END AS survey,
    t.partitions,
    t.rate,                                                                      -- records/s
    t.newest,                                                                    -- ms since 1970, UTC
    CASE WHEN t.newest IS NULL OR s.newest IS NULL THEN 'listed'
         WHEN s.newest - t.newest <= {LIVE}000 THEN 'live'
         WHEN s.newest - t.newest <= {LATE}000 THEN 'late' ELSE 'gone' END AS state,
    (SELECT coalesce(sum(m.members), 0) FROM members AS m WHERE m.site = t.site AND m.topic = t.topic)
        AS members,
    t.schema_id,                                                                 -- of its newest version
    s.bootstrap, s.registry, s.age                                               -- s
FROM known_topics AS t JOIN known_sites AS s USING (site);

CREATE VIEW peers AS SELECT
    e.site, e.kind, e.name, e.owner, e.survey, e.topic, e.endpoints, e.capabilities,
    CASE WHEN e.ended THEN 'gone'
         WHEN e.interval > 0 AND s.now - e.heartbeat > l.gone THEN 'gone'
         WHEN e.interval > 0 AND s.now - e.heartbeat > l.late THEN 'late'
         WHEN e.interval > 0 OR EXISTS (SELECT 1 FROM members AS m
              WHERE e.kind = 'consumer' AND m.site = e.site AND m.name = e.name) THEN 'live'
         ELSE coalesce((SELECT t.state FROM streams AS t WHERE t.site = e.site AND t.topic = e.topic),
                       'listed') END AS state,
    CASE WHEN e.interval > 0 THEN s.now - e.heartbeat END AS silence,            -- s
    (SELECT sum(m.members) FROM members AS m WHERE m.site = e.site AND m.name = e.name) AS members,
    (SELECT t.newest FROM known_topics AS t WHERE t.site = e.site AND t.topic = e.topic) AS newest,
    e.heard,                                                                     -- ms since 1970, UTC
    e.ended, e.rivals, s.bootstrap, s.registry, s.age                                     -- s
FROM entries AS e JOIN known_sites AS s USING (site), limits AS l;

CREATE VIEW processes AS SELECT
    site, name, owner, survey, endpoints, capabilities, state, silence, heard, ended, rivals, age
FROM peers WHERE kind = 'process';

CREATE VIEW filters AS SELECT
    f.site, f.owner, f.name, f.version, f.survey, f.topic, f.cap,                -- alerts a visit
    f.live AND EXISTS (SELECT 1 FROM processes AS p
        WHERE p.site = f.site AND p.name = 'filters' AND p.state <> 'gone') AS alive,
    t.rate, t.newest, t.members, t.schema_id, s.bootstrap, s.registry, s.age
FROM known_filters AS f JOIN known_sites AS s USING (site) LEFT JOIN streams AS t USING (site, topic);

CREATE VIEW consumers AS SELECT
    m.site, m.name, m.topic, m.members,
    m.lag,                                                                       -- records
    s.age                                                                        -- s
FROM members AS m JOIN known_sites AS s USING (site);

CREATE VIEW feeds AS SELECT
    p.site, p.name AS gateway, f.value ->> 'name' AS name, t.value AS topic,
    f.value ->> 'endpoint' AS endpoint, p.state, p.age
FROM processes AS p,
     json_each(CASE WHEN json_valid(p.capabilities) THEN p.capabilities ELSE '{{}}' END, '$.feeds') AS f,
     json_each(CASE WHEN f.type = 'object' THEN f.value ELSE '{{}}' END, '$.topics') AS t
WHERE f.type = 'object';

CREATE VIEW owners AS SELECT DISTINCT site, substr(topic, 10) AS name FROM known_topics
WHERE topic LIKE 'requests.%';

CREATE VIEW brokers AS SELECT site, name, owner, endpoints FROM entries WHERE kind = 'broker'
UNION SELECT DISTINCT site, substr(topic, 9), '', '{{}}' FROM known_topics AS t WHERE topic LIKE 'returns.%'
AND NOT EXISTS (SELECT 1 FROM entries AS e
    WHERE e.site = t.site AND e.kind = 'broker' AND e.name = substr(t.topic, 9));

CREATE VIEW sites AS SELECT
    s.site, s.bootstrap, s.registry,
    (SELECT count(*) FROM entries AS e WHERE e.site = s.site) AS entries,
    (SELECT count(*) FROM peers AS p WHERE p.site = s.site AND p.state = 'live') AS live,
    s.newest AS heard, s.age
FROM known_sites AS s;
"""  # noqa: S608  (numbers)
