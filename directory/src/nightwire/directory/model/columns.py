"""Units and meaning of the columns of the views, by name: one name means one thing everywhere."""

from collections.abc import Mapping
from typing import NamedTuple


class Column(NamedTuple):
    """The description of a column.

    Attributes:
        unit: As VOUnits spells it; empty for none.
        text: One line for people.
    """

    unit: str
    text: str


COLUMNS: Mapping[str, Column] = {
    "site": Column("", "Name of the site that says so"),
    "age": Column("s", "Time since the site was last heard; everything of it is that old"),
    "kind": Column("", "What an entry or stream is: process, broker, alerts, filter, ..."),
    "name": Column("", "Name, unique among its kind at a site"),
    "owner": Column("", "Whose it is"),
    "survey": Column("", "Survey whose alerts it is about"),
    "topic": Column("", "Topic in Kafka"),
    "endpoints": Column("", "Addresses by what they are for, a JSON object"),
    "endpoint": Column("", "HOST:PORT"),
    "capabilities": Column("", "What else it says of itself, a JSON object"),
    "state": Column("", "live, late, gone, or listed where nothing tells"),
    "silence": Column("s", "Time since the last heartbeat, by the log's clock"),
    "heard": Column("ms", "Kafka's time of its newest record in the log, since 1970, UTC"),
    "ended": Column("", "1 where it unregistered"),
    "rivals": Column("", "Records of other instances while the name was taken"),
    "members": Column("", "Members of consumer groups that read it"),
    "newest": Column("ms", "Time of the topic's newest record, since 1970, UTC"),
    "rate": Column("1/s", "Records a second, the mean of the last minute"),
    "lag": Column("", "Records that lie ahead of a consumer group"),
    "partitions": Column("", "Partitions of the topic"),
    "schema_id": Column("", "Id of the newest schema in the registry"),
    "bootstrap": Column("", "How the site's Kafka is reached"),
    "registry": Column("", "URL of the site's schema registry"),
    "version": Column("", "Version of the filter that is live"),
    "cap": Column("", "Most alerts of a visit that a filter passes on"),
    "alive": Column("", "1 where the filter judges alerts"),
    "gateway": Column("", "Process that sends the feed"),
    "subscriber": Column("", "Who wants it, or offers it"),
    "condition": Column("", "Which of the topic's events, in SQL; TRUE for all"),
    "channel": Column("", "Channel by which they are wanted; null where that does not matter"),
    "made": Column("ms", "When it was made, by its own clock, since 1970, UTC"),
    "expires": Column("ms", "When it ends by itself, by Kafka's clock, since 1970, UTC; null: never"),
    "entries": Column("", "Entries of the site"),
    "live": Column("", "Entries of the site that are live"),
    "refused": Column("", "Records of the site that could not stand in the directory"),
    "ivoid": Column("", "IVOA identifier, in small letters"),
    "res_type": Column("", "Type of the resource, with the canonical prefix"),
    "res_title": Column("", "Full name"),
    "short_name": Column("", "At most 16 characters"),
    "res_description": Column("", "What it is"),
    "created": Column("", "When the description was made, UTC; null: unknown"),
    "updated": Column("", "When it was last heard, UTC"),
    "cap_index": Column("", "Number of the capability within the resource"),
    "cap_type": Column("", "Type of the capability, with the canonical prefix"),
    "standard_id": Column("", "Standard that the capability follows"),
    "intf_index": Column("", "Number of the interface within the resource"),
    "intf_type": Column("", "Type of the interface, with the canonical prefix"),
    "intf_role": Column("", "std where a standard defines the interface"),
    "access_url": Column("", "Where it is reached"),
    "role_name": Column("", "Name of a person or organisation"),
    "base_role": Column("", "publisher or creator"),
}
