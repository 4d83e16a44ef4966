"""Simulated visits: the sky, detections, stamps and alerts, and the schedule of their leaving."""
