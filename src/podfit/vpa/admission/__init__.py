"""The admission controller: it gives new pods what is recommended, and checks VPA objects."""
