"""The engine on Spark, and the public Spark source of alerts."""
