"""People's files as text: what they say, and where in the file it stands."""
