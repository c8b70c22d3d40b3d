"""The media types of whole objects."""

JSON, YAML = "application/json", "application/yaml"
