"""Views of the writers and readers of each topic, over `schema`'s.

The writer of a topic by its name: ``filter.OWNER.NAME`` its filter, ``returns.BROKER`` that broker,
``requests.OWNER`` that owner, and the filter engine answers.
"""

FLOW_VIEWS = """
CREATE VIEW writers AS
SELECT site, topic, kind, name, owner, state FROM peers
WHERE topic <> '' AND kind IN ('process', 'producer', 'broker')
UNION SELECT site, 'alerts.' || survey, kind, name, owner, state FROM peers
WHERE topic = '' AND survey <> '' AND kind IN ('process', 'producer')
UNION SELECT site, topic, 'filter', owner || '/' || name, owner, CASE WHEN alive THEN 'live' ELSE 'gone' END
FROM filters
UNION SELECT p.site, t.topic, p.kind, p.name, p.owner, p.state FROM peers AS p JOIN streams AS t USING (site)
WHERE p.kind = 'process' AND p.name = 'filters' AND t.kind IN ('filters', 'answers', 'seen', 'overflow')
UNION SELECT t.site, t.topic, 'broker', substr(t.topic, 9), coalesce(p.owner, ''), coalesce(p.state, 'listed')
FROM streams AS t LEFT JOIN peers AS p
    ON p.site = t.site AND p.kind = 'broker' AND p.name = substr(t.topic, 9) WHERE t.kind = 'returns'
UNION SELECT site, topic, 'owner', substr(topic, 10), substr(topic, 10), 'listed'
FROM streams WHERE kind = 'requests';

CREATE VIEW readers AS
SELECT site, topic, 'consumer' AS kind, name, '' AS owner, members, lag, 'live' AS state FROM consumers
UNION ALL SELECT p.site, p.topic, p.kind, p.name, p.owner, p.members, NULL, p.state FROM peers AS p
WHERE p.kind = 'consumer' AND p.topic <> '' AND NOT p.ended AND NOT EXISTS (SELECT 1 FROM members AS m
    WHERE m.site = p.site AND m.topic = p.topic AND m.name = p.name)
UNION ALL SELECT site, 'alerts.' || survey, 'filter', owner || '/' || name, owner, NULL, NULL,
    CASE WHEN alive THEN 'live' ELSE 'gone' END FROM filters
UNION ALL SELECT site, topic, 'feed', gateway || '/' || name, '', NULL, NULL, state FROM feeds;
"""
