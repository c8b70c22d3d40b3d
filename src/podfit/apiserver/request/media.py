"""Media types of request and response bodies."""

JSON, YAML = "application/json", "application/yaml"
