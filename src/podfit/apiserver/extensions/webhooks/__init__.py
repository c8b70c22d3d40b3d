"""Admission webhooks: `rules` and `conditions` say which are asked, `client` asks, `review` reads the answer."""
