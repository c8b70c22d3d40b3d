"""Which addresses are behind a service: of its pods, in Endpoints and in slices of a bounded size."""
