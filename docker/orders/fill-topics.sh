#!/bin/sh
# Create the topics, and write two orders of which one is paid.
set -eu
kafka=/opt/kafka/bin
for topic in orders payments; do
  "$kafka/kafka-topics.sh" --bootstrap-server "$1" --create --if-not-exists --topic "$topic"
done
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
printf '{"order": "o1", "placed": "%s"}\n{"order": "o2", "placed": "%s"}\n' "$now" "$now" |
  "$kafka/kafka-console-producer.sh" --bootstrap-server "$1" --topic orders
printf '{"order": "o1", "paid": "%s"}\n' "$now" |
  "$kafka/kafka-console-producer.sh" --bootstrap-server "$1" --topic payments
