"""SQLite's tables, and the views that users query; units stand beside columns."""

LIVE, LATE = 300, 129_600
"""Age of a topic's newest record up to which it is live, and late: surveys rest by day. [s]"""

SCHEMA = f"""
CREATE TABLE limits (late REAL, gone REAL);
CREATE TABLE site_logs (
    site TEXT PRIMARY KEY, bootstrap TEXT, registry TEXT, now REAL, newest INTEGER, refused INTEGER,
    reached REAL
) WITHOUT ROWID;
CREATE VIEW known_sites AS SELECT
    site, bootstrap, registry, now, newest, refused,
    round(max(0.0, julianday('now') - reached) * 86400, 1) AS age
FROM site_logs;
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
CREATE INDEX filters_by_topic ON known_filters (site, topic);
CREATE INDEX filters_by_name ON known_filters (name);
CREATE INDEX filters_by_owner ON known_filters (owner);
CREATE INDEX filters_by_survey ON known_filters (survey);
CREATE TABLE known_topics (
    site TEXT, topic TEXT, partitions INTEGER, rate REAL, newest INTEGER, schema_id INTEGER,
    kind TEXT AS (CASE instr(topic, '.') WHEN 0 THEN topic ELSE substr(topic, 1, instr(topic, '.') - 1) END),
    label TEXT AS (substr(topic, length(kind) + 2)),
    survey TEXT AS (CASE kind WHEN 'alerts' THEN label ELSE '' END),
    PRIMARY KEY (site, topic)
) WITHOUT ROWID;
CREATE INDEX topics_by_name ON known_topics (topic);
CREATE INDEX topics_by_kind ON known_topics (kind, label);
CREATE INDEX topics_by_survey ON known_topics (survey);
CREATE TABLE members (
    site TEXT, name TEXT, topic TEXT, members INTEGER, lag INTEGER, PRIMARY KEY (site, topic, name)
) WITHOUT ROWID;
CREATE INDEX members_by_name ON members (name);
CREATE INDEX members_by_topic ON members (topic);

CREATE TABLE interests (
    site TEXT, subscriber TEXT, name TEXT, kind TEXT, topic TEXT, condition TEXT, channel TEXT, made INTEGER,
    interval REAL, expires INTEGER, heartbeat REAL, heard INTEGER, PRIMARY KEY (site, subscriber, name)
) WITHOUT ROWID;
CREATE INDEX interests_by_topic ON interests (topic);

CREATE VIEW streams AS SELECT
    t.site, t.topic, t.kind, t.survey, t.partitions,
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
    CASE WHEN e.interval > 0 THEN round(s.now - e.heartbeat, 3) END AS silence,  -- s
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
    t.rate, t.newest,
    (SELECT coalesce(sum(m.members), 0) FROM members AS m WHERE m.site = f.site AND m.topic = f.topic)
        AS members,
    t.schema_id, s.bootstrap, s.registry, s.age
FROM known_filters AS f JOIN known_sites AS s USING (site)
LEFT JOIN known_topics AS t ON t.site = f.site AND t.topic = f.topic;

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

CREATE VIEW channels AS SELECT
    t.site, CASE t.kind WHEN 'alerts' THEN 'stream' ELSE t.kind END AS kind,
    CASE t.kind WHEN 'alerts' THEN t.rest ELSE substr(t.rest, instr(t.rest, '.') + 1) END AS name,
    CASE t.kind WHEN 'alerts' THEN '' ELSE substr(t.rest, 1, instr(t.rest, '.') - 1) END AS owner,
    coalesce(f.survey, t.survey) AS survey, t.topic,
    t.rate,                                                                      -- records/s
    t.state, t.schema_id, t.bootstrap, t.registry, t.age                         -- s
FROM (SELECT *, substr(topic, instr(topic, '.') + 1) AS rest FROM streams
      WHERE kind IN ('alerts', 'filter', 'broker')) AS t
LEFT JOIN known_filters AS f USING (site, topic)
UNION ALL SELECT p.site, 'feed', p.name, '', coalesce(f.survey, t.survey), topic,
    t.rate, t.state, t.schema_id, t.bootstrap, t.registry, t.age
FROM feeds AS p JOIN streams AS t USING (site, topic) LEFT JOIN known_filters AS f USING (site, topic)
UNION ALL SELECT e.site, e.kind, e.name, e.owner, e.survey, topic,
    t.rate, t.state, t.schema_id, t.bootstrap, t.registry, t.age
FROM entries AS e JOIN streams AS t USING (site, topic)
WHERE e.kind NOT IN ('consumer', 'process', 'site', 'survey');

CREATE VIEW subscriptions AS SELECT
    i.site, i.subscriber, i.name, i.kind, i.topic, i.condition, i.channel,
    CASE WHEN i.expires <= s.newest OR s.now - i.heartbeat > 2 * i.interval THEN 'gone'
         WHEN s.now - i.heartbeat > 1.2 * i.interval THEN 'late' ELSE 'live' END AS state,
    round(s.now - i.heartbeat, 3) AS silence,                                    -- s
    i.made, i.expires, i.heard,                                                  -- ms since 1970, UTC
    s.age                                                                        -- s
FROM interests AS i JOIN known_sites AS s USING (site);

CREATE VIEW owners AS SELECT t.site, t.label AS name, s.age
FROM known_topics AS t JOIN known_sites AS s USING (site) WHERE t.kind = 'requests';

CREATE VIEW brokers AS SELECT e.site, e.name, e.owner, e.endpoints, s.age
FROM entries AS e JOIN known_sites AS s USING (site) WHERE e.kind = 'broker'
UNION ALL SELECT t.site, t.label, '', '{{}}', s.age
FROM known_topics AS t JOIN known_sites AS s USING (site) WHERE t.kind = 'returns'
AND NOT EXISTS (SELECT 1 FROM entries AS e WHERE e.site = t.site AND e.kind = 'broker' AND e.name = t.label);

CREATE VIEW sites AS SELECT
    s.site, s.bootstrap, s.registry,
    (SELECT count(*) FROM entries AS e WHERE e.site = s.site) AS entries,
    (SELECT count(*) FROM peers AS p WHERE p.site = s.site AND p.state = 'live') AS live,
    s.newest AS heard, s.refused, s.age                                          -- records, s
FROM known_sites AS s;

ANALYZE;
INSERT INTO sqlite_stat1 VALUES
    ('entries', 'entries', '100000 100 20 1'), ('entries', 'entries_by_name', '100000 50 1 1'),
    ('entries', 'entries_by_kind', '100000 20000 1000 50 1'),
    ('known_topics', 'known_topics', '20000 20 1'), ('known_topics', 'topics_by_name', '20000 50 1'),
    ('known_topics', 'topics_by_kind', '20000 2000 50 1 1'),
    ('known_topics', 'topics_by_survey', '20000 500 1 1'),
    ('interests', 'interests', '10000 1000 5 1'), ('interests', 'interests_by_topic', '10000 500 1 1'),
    ('members', 'members', '20000 20 5 1'), ('members', 'members_by_name', '20000 50 1 1'),
    ('members', 'members_by_topic', '20000 50 5 1'),
    ('known_filters', 'known_filters', '10000 10 5 1'), ('known_filters', 'filters_by_name', '10000 20 1 1'),
    ('known_filters', 'filters_by_owner', '10000 50 5 1'),
    ('known_filters', 'filters_by_survey', '10000 1000 10 5 1');
"""  # noqa: S608  (numbers)
