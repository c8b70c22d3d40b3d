"""What makes an object acceptable, in the API's own words and order.

Every function answers a list of `FieldError`; an empty one means valid. `kinds` is the entry: create and update rules
of each kind. The order of the errors is that of the API, because clients and scripts compare the whole text.
"""
