#!/bin/sh
# Run one broker of the cluster: write its settings, format its storage the first time, become Kafka.
#
#   KAFKA_NODE        its number, from 1
#   KAFKA_HOST        its name in the network
#   KAFKA_OUTSIDE     HOST:PORT by which clients outside the network reach it
#   KAFKA_VOTERS      1@host:9093,2@host:9093,...
#   KAFKA_CLUSTER_ID  22 characters of base64, the same on each broker
#   KAFKA_SUPER_USER  who may do everything: the brokers, and the stack's own processes
#   KAFKA_PASSWORD    its password, of letters, digits, - and _
#   KAFKA_HEAP        Java's heap, 512m by default
#   KAFKA_PUBLIC      HOST:PORT by which other machines reach it, over TLS; nothing where it is empty
#   KAFKA_KEYSTORE    key and certificates for that (PEM), /etc/nightwire/tls/server.pem by default
set -eu
umask 077 # a password is in it
case ${KAFKA_PASSWORD:?} in
change-me*)
    echo "KAFKA_PASSWORD is the example's, which everybody knows: make compose-up makes a .env with one of its own" >&2
    exit 1
    ;;
esac
settings=/tmp/server.properties
security=org.apache.kafka.common.security
login="$security.plain.PlainLoginModule required username=\"${KAFKA_SUPER_USER:?}\" password=\"${KAFKA_PASSWORD:?}\" \"user_$KAFKA_SUPER_USER\"=\"$KAFKA_PASSWORD\";"
{
    cat /opt/kafka/server.properties
    echo "node.id=${KAFKA_NODE:?}"
    echo "controller.quorum.voters=${KAFKA_VOTERS:?}"
    echo "advertised.listeners=INTERNAL://${KAFKA_HOST:?}:9092,EXTERNAL://${KAFKA_OUTSIDE:?}"
    echo "super.users=User:$KAFKA_SUPER_USER"
    echo "listener.name.controller.plain.sasl.jaas.config=$login"
    for listener in internal external; do
        echo "listener.name.$listener.plain.sasl.jaas.config=$login"
        echo "listener.name.$listener.scram-sha-512.sasl.jaas.config=$security.scram.ScramLoginModule required;"
    done
} >"$settings"
printf '%s\n' security.protocol=SASL_PLAINTEXT sasl.mechanism=PLAIN "sasl.jaas.config=$login" \
    >/tmp/operator.properties # for Kafka's own commands, in this container
if [ -n "${KAFKA_PUBLIC:-}" ]; then # later lines displace earlier ones
    public=listener.name.public
    sed -n 's/^listeners=.*/&,PUBLIC:\/\/:29092/p; s/^listener.security.protocol.map=.*/&,PUBLIC:SASL_SSL/p
        s/^advertised.listeners=.*/&,PUBLIC:\/\/'"$KAFKA_PUBLIC"'/p' "$settings" >"$settings.public"
    cat >>"$settings.public" <<END
$public.sasl.enabled.mechanisms=SCRAM-SHA-512
$public.scram-sha-512.sasl.jaas.config=$security.scram.ScramLoginModule required;
$public.ssl.keystore.type=PEM
$public.ssl.keystore.location=${KAFKA_KEYSTORE:-/etc/nightwire/tls/server.pem}
$public.ssl.allow.dn.changes=true
$public.ssl.allow.san.changes=true
END
    cat "$settings.public" >>"$settings"
fi
heap=${KAFKA_HEAP:-512m}
if [ ! -f /var/lib/kafka/data/meta.properties ]; then
    java -Xmx128m -cp '/opt/kafka/jars/*' kafka.tools.StorageTool format \
        --cluster-id "${KAFKA_CLUSTER_ID:?}" --config "$settings"
fi
agent=$(echo /opt/kafka/jars/jmx_prometheus_javaagent-*.jar) # tells Prometheus, inside the network alone
exec java "-javaagent:$agent=9404:/opt/kafka/jmx.yml" \
    -Xmx"$heap" -Xms"$heap" -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:+ExitOnOutOfMemoryError \
    -Dlog4j2.configurationFile=/opt/kafka/log4j2.yaml -cp '/opt/kafka/jars/*' kafka.Kafka "$settings"
