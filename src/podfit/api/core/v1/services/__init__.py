"""Services and endpoints: types, defaults, columns, validation."""
