"""The scenario `growth`: what ten times as many alerts, filters, subscribers and consumers cost."""
