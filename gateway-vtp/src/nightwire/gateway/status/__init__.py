"""What a gateway shows of itself: metrics, the status model, its tables and its page."""
