"""A batch after the other, planned, judged, decided and sent; and the services beside."""
