"""The metrics of the field, from libraries where these have them."""
