"""Simulated visits: the sky, detections, stamps and alerts, and the schedule on which they leave."""
